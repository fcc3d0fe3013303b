#include "decode/expander.h"

#include <algorithm>
#include <cmath>
#include <tuple>

#include "base/error.h"

namespace hsm {
namespace {

int64_t largest_cluster(const Scorer& scorer) {
  size_t largest = 0;
  for (int64_t c = 0; c < scorer.clusters(); ++c) largest = std::max(largest, scorer.cluster_words(c).size());
  return static_cast<int64_t>(largest);
}

}  // namespace

Expander::Expander(Arena& arena, const Scorer& scorer, int64_t capacity)
    : scorer_(&scorer),
      items_(arena.take<Expansion>(capacity, "expansions")),
      heads_(arena.take<const float*>(capacity, "expansions")),
      offsets_(arena.take<int64_t>(capacity, "expansions")),
      groups_(arena.take<int32_t>(capacity + 1, "expansions")),
      scores_(arena.take<float>(capacity * largest_cluster(scorer), "leaf scores")) {}

void Expander::run(const RowBatch& rows) {
  const auto used = items_.first(static_cast<size_t>(count_));
  std::sort(used.begin(), used.end(), [](const Expansion& a, const Expansion& b) {
    return std::tie(a.cluster, a.owner, a.row, a.tag) < std::tie(b.cluster, b.owner, b.row, b.tag);
  });
  int64_t groups = 0;
  int64_t offset = 0;
  for (size_t i = 0; i < used.size(); ++i) {
    if (i == 0 || used[i].cluster != used[i - 1].cluster) {
      groups_[static_cast<size_t>(groups++)] = static_cast<int32_t>(i);
    }
    heads_[i] = rows.head(used[i].row);
    offsets_[i] = offset;
    offset += static_cast<int64_t>(scorer_->cluster_words(used[i].cluster).size());
  }
  groups_[static_cast<size_t>(groups)] = static_cast<int32_t>(count_);
  rows.pool().run(groups, [&](int64_t group, int) {
    const auto first = static_cast<size_t>(groups_[static_cast<size_t>(group)]);
    const auto end = static_cast<size_t>(groups_[static_cast<size_t>(group) + 1]);
    scorer_->leaves(used[first].cluster, heads_.subspan(first, end - first),
                    scores_.data() + offsets_[first]);
  });
  for (size_t i = 0; i < used.size(); ++i) {
    if (std::isnan(scores_[static_cast<size_t>(offsets_[i])])) {
      throw DataError(
          "the model's scores within a cluster are not numbers: its weights hold NaN or infinite values");
    }
  }
  total_ += count_;
}

std::span<const float> Expander::leaves(int64_t item) const {
  const auto i = static_cast<size_t>(item);
  return scores_.subspan(static_cast<size_t>(offsets_[i]), scorer_->cluster_words(items_[i].cluster).size());
}

}  // namespace hsm
