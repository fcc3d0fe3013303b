#include "train/touched_rows.h"

#include <algorithm>
#include <iterator>
#include <numeric>

namespace hsm {
namespace {

void sort_distinct(std::vector<int64_t>& values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
}

std::vector<int64_t> head_rows(const Batch& batch, const HeadLayout& layout) {
  std::vector<bool> hit(static_cast<size_t>(layout.clusters()), false);
  for (const int32_t word : batch.targets) {
    if (word == kNoTarget) continue;
    const int64_t row = layout.row_of_word[static_cast<size_t>(word)];
    const int32_t cluster = layout.cluster_of_row[static_cast<size_t>(row)];
    if (cluster != kShortlist) hit[static_cast<size_t>(cluster)] = true;
  }
  std::vector<int64_t> rows(static_cast<size_t>(layout.shortlist()));
  std::iota(rows.begin(), rows.end(), int64_t{0});
  for (size_t cluster = 0; cluster < hit.size(); ++cluster) {
    if (!hit[cluster]) continue;
    for (int64_t row = layout.cluster_offsets[cluster]; row < layout.cluster_offsets[cluster + 1]; ++row) {
      rows.push_back(row);
    }
  }
  return rows;
}

}  // namespace

TouchedRows touched_rows(const Batch& batch, const HeadLayout& layout, bool tied) {
  TouchedRows touched;
  touched.head = head_rows(batch, layout);
  touched.embedding.reserve(batch.inputs.size());
  for (const int32_t word : batch.inputs) {
    touched.embedding.push_back(layout.row_of_word[static_cast<size_t>(word)]);
  }
  sort_distinct(touched.embedding);
  if (!tied) return touched;
  std::vector<int64_t> both;
  std::set_union(touched.head.begin(), touched.head.end(), touched.embedding.begin(), touched.embedding.end(),
                 std::back_inserter(both));
  touched.head = touched.embedding = std::move(both);
  return touched;
}

}  // namespace hsm
