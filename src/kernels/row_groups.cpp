#include "kernels/row_groups.h"

#include <algorithm>
#include <numeric>

namespace hsm::kernels {
namespace {

constexpr int64_t kRowTile = 16;

}  // namespace

void RowGroups::assign(std::span<const int64_t> row_of_token) {
  const auto row_of = [&](int64_t token) { return row_of_token[static_cast<size_t>(token)]; };
  order.resize(row_of_token.size());
  std::iota(order.begin(), order.end(), int64_t{0});
  std::ranges::stable_sort(order, {}, row_of);
  rows.clear();
  first.clear();
  place.resize(row_of_token.size());
  for (size_t i = 0; i < order.size(); ++i) {
    const int64_t row = row_of(order[i]);
    if (rows.empty() || rows.back() != row) {
      rows.push_back(row);
      first.push_back(static_cast<int64_t>(i));
    }
    place[static_cast<size_t>(order[i])] = size() - 1;
  }
  first.push_back(static_cast<int64_t>(order.size()));
}

template <class T>
void sum_groups(const RowGroups& groups, std::span<const T> scales, const T* values, int64_t width, T* sums,
                ThreadPool& pool) {
  const auto sum_one = [&](int64_t row) {
    T* sum = sums + row * width;
    const auto begin = static_cast<size_t>(groups.first[static_cast<size_t>(row)]);
    const auto end = static_cast<size_t>(groups.first[static_cast<size_t>(row) + 1]);
    for (size_t i = begin; i < end; ++i) {
      const T* from = values + groups.order[i] * width;
      const T scale = scales.empty() ? T{1} : scales[static_cast<size_t>(groups.order[i])];
      if (i == begin) {
        for (int64_t u = 0; u < width; ++u) sum[u] = from[u] * scale;
      } else {
        for (int64_t u = 0; u < width; ++u) sum[u] += from[u] * scale;
      }
    }
  };
  pool.run((groups.size() + kRowTile - 1) / kRowTile, [&](int64_t tile, int) {
    for (int64_t row = tile * kRowTile; row < std::min(groups.size(), (tile + 1) * kRowTile); ++row)
      sum_one(row);
  });
}

template void sum_groups(const RowGroups&, std::span<const float>, const float*, int64_t, float*,
                         ThreadPool&);
template void sum_groups(const RowGroups&, std::span<const double>, const double*, int64_t, double*,
                         ThreadPool&);

}  // namespace hsm::kernels
