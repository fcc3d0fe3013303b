#include "kernels/head_plan.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace hsm::kernels {
namespace {

/// 0 for the shortlist, then the clusters.
size_t bucket(const HeadShape& shape, int64_t row) {
  assert(row < shape.words);
  return row < shape.shortlist ? 0 : static_cast<size_t>(shape.cluster_of_row[static_cast<size_t>(row)]) + 1;
}

}  // namespace

void HeadPlan::make(const HeadShape& shape, std::span<const int64_t> targets, bool factors) {
  const auto clusters = static_cast<size_t>(shape.clusters());
  places.assign(clusters + 2, 0);
  for (const int64_t row : targets) {
    if (row >= 0) ++places[bucket(shape, row) + 1];
  }
  std::partial_sum(places.begin(), places.end(), places.begin());

  hits.clear();
  gradient_rows = shape.shortlist;
  for (size_t c = 0; c < clusters; ++c) {
    const int64_t size = shape.cluster_offsets[c + 1] - shape.cluster_offsets[c];
    const int64_t count = places[c + 2] - places[c + 1];
    if (count == 0 || size < 2) continue;
    const bool factored = factors && LeafFactors<float>::pays(count, size, shape.dim);
    hits.push_back({static_cast<int64_t>(c), places[c + 1], count, factored, gradient_rows});
    if (!factored) gradient_rows += size;
  }

  const auto total = static_cast<size_t>(places.back());
  tokens.resize(total);
  root_column.resize(total);
  leaf_column.resize(total);
  for (size_t i = 0; i < targets.size(); ++i) {
    const int64_t row = targets[i];
    if (row < 0) continue;
    const size_t b = bucket(shape, row);
    const auto place = static_cast<size_t>(places[b]++);
    tokens[place] = static_cast<int64_t>(i);
    root_column[place] = b == 0 ? row : shape.shortlist + static_cast<int64_t>(b) - 1;
    leaf_column[place] = b == 0 ? 0 : row - shape.cluster_offsets[b - 1];
  }
}

std::vector<int64_t> touched_rows(const HeadShape& shape, std::span<const int64_t> targets) {
  std::vector<bool> hit(static_cast<size_t>(shape.clusters()));
  for (const int64_t row : targets) {
    if (row >= shape.shortlist)
      hit[static_cast<size_t>(shape.cluster_of_row[static_cast<size_t>(row)])] = true;
  }
  std::vector<int64_t> rows(static_cast<size_t>(shape.shortlist));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  for (size_t c = 0; c < hit.size(); ++c) {
    const int64_t first = shape.cluster_offsets[c];
    const int64_t last = shape.cluster_offsets[c + 1];
    if (!hit[c] || last - first < 2) continue;
    for (int64_t row = first; row < last; ++row) rows.push_back(row);
  }
  return rows;
}

}  // namespace hsm::kernels
