#include "kernels/embedding.h"

#include <algorithm>
#include <vector>

namespace hsm::kernels {
namespace {

constexpr int64_t kRowTile = 64;

template <class Body>
void for_each_tile(int64_t rows, ThreadPool& pool, const Body& body) {
  pool.run((rows + kRowTile - 1) / kRowTile, [&](int64_t tile, int) {
    for (int64_t row = tile * kRowTile; row < std::min(rows, (tile + 1) * kRowTile); ++row) body(row);
  });
}

}  // namespace

void gather_rows(const float* table, int64_t width, std::span<const int64_t> rows,
                 std::span<const float> scales, float* out, ThreadPool& pool) {
  for_each_tile(static_cast<int64_t>(rows.size()), pool, [&](int64_t i) {
    const float* row = table + rows[static_cast<size_t>(i)] * width;
    if (scales.empty()) {
      std::copy_n(row, width, out + i * width);
    } else {
      for (int64_t u = 0; u < width; ++u) out[i * width + u] = row[u] * scales[static_cast<size_t>(i)];
    }
  });
}

void scatter_rows(const RowGroups& groups, std::span<const float> scales, const float* gradient,
                  int64_t width, RowGradients<float>& result, ThreadPool& pool) {
  result.width = width;
  result.rows = groups.rows;
  result.values.resize(result.rows.size() * static_cast<size_t>(width));
  sum_groups(groups, scales, gradient, width, result.values.data(), pool);
}

void merge_rows(const RowGradients<float>& narrow, const RowGradients<float>& wide, RowGradients<float>& sum,
                ThreadPool& pool) {
  struct Sources {
    int64_t narrow = -1;
    int64_t wide = -1;
  };
  std::vector<Sources> sources;
  sum.width = wide.width;
  sum.rows.clear();
  size_t a = 0;
  size_t b = 0;
  while (a < narrow.rows.size() || b < wide.rows.size()) {
    const bool take_a = b == wide.rows.size() || (a < narrow.rows.size() && narrow.rows[a] <= wide.rows[b]);
    const bool take_b = a == narrow.rows.size() || (b < wide.rows.size() && wide.rows[b] <= narrow.rows[a]);
    sum.rows.push_back(take_a ? narrow.rows[a] : wide.rows[b]);
    sources.push_back({take_a ? static_cast<int64_t>(a++) : -1, take_b ? static_cast<int64_t>(b++) : -1});
  }
  sum.values.resize(sum.rows.size() * static_cast<size_t>(sum.width));
  for_each_tile(static_cast<int64_t>(sum.rows.size()), pool, [&](int64_t row) {
    const Sources from = sources[static_cast<size_t>(row)];
    float* to = sum.values.data() + row * sum.width;
    if (from.wide >= 0) {
      std::copy_n(wide.values.data() + from.wide * wide.width, wide.width, to);
    } else {
      std::fill_n(to, sum.width, 0.0F);
    }
    if (from.narrow < 0) return;
    const float* add = narrow.values.data() + from.narrow * narrow.width;
    for (int64_t u = 0; u < narrow.width; ++u) to[u] += add[u];
  });
}

}  // namespace hsm::kernels
