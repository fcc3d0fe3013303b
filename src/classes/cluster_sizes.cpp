#include "classes/cluster_sizes.h"

#include <algorithm>

namespace hsm {

ClusterSizes::ClusterSizes(int64_t clusters, const ClusterLimits& limits, int64_t total)
    : limits_(limits),
      total_(total),
      price_(limits.price * static_cast<double>(total) /
             static_cast<double>(std::max<int64_t>(1, limits.step.tokens))),
      loads_(static_cast<size_t>(clusters)),
      base_(loads_.size()),
      slope_(loads_.size()) {}

void ClusterSizes::change(int64_t cluster, int64_t words, int64_t count) {
  constexpr int64_t kSlopeTokens = 16;
  const auto c = static_cast<size_t>(cluster);
  loads_[c].words += words;
  loads_[c].count += count;
  if (price_ == 0) return;
  base_[c] = entry_fee(cluster, 0);
  slope_[c] = (entry_fee(cluster, kSlopeTokens) - base_[c]) / static_cast<double>(kSlopeTokens);
}

double ClusterSizes::fee(const ClusterLoad& load) const {
  return price_ * expected_leaf_cost(limits_.step, load, total_);
}

double ClusterSizes::entry_fee(int64_t cluster, int64_t count) const {
  if (price_ == 0) return 0;
  const ClusterLoad& load = loads_[static_cast<size_t>(cluster)];
  return fee({load.words + 1, load.count + count}) - fee(load);
}

double ClusterSizes::refund(int64_t cluster, int64_t count) const {
  if (price_ == 0) return 0;
  const ClusterLoad& load = loads_[static_cast<size_t>(cluster)];
  return fee(load) - fee({load.words - 1, load.count - count});
}

double ClusterSizes::fees() const {
  double sum = 0;
  for (const ClusterLoad& load : loads_) sum += fee(load);
  return sum;
}

void ClusterSizes::subtract_fees(int64_t count, std::span<double> gain) const {
  if (price_ == 0) return;
  for (size_t c = 0; c < loads_.size(); ++c) gain[c] -= base_[c] + slope_[c] * static_cast<double>(count);
}

}  // namespace hsm
