#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "classes/step_cost.h"

namespace hsm {

/// What keeps clusters from growing: a limit, and the price of the time that a word in them takes.
struct ClusterLimits {
  int64_t largest = 0;  ///< most words of a cluster; 0: as many as come
  /// What a nanosecond of the expected cost of a token is worth, in the log-likelihood of a token; 0:
  /// nothing.
  double price = 0;
  StepShape step{};  ///< where time has a price: what it depends on
};

/// Words and tokens of the clusters while words move. `total` tokens are counted in all, those of words at
/// the root among them.
class ClusterSizes {
 public:
  ClusterSizes(int64_t clusters, const ClusterLimits& limits, int64_t total);

  void change(int64_t cluster, int64_t words, int64_t count);
  [[nodiscard]] int64_t words(int64_t cluster) const { return loads_[static_cast<size_t>(cluster)].words; }
  [[nodiscard]] bool has_room(int64_t cluster) const {
    return limits_.largest == 0 || words(cluster) < limits_.largest;
  }
  /// A cluster keeps one word at least.
  [[nodiscard]] bool can_lose(int64_t cluster) const { return words(cluster) > 1; }

  /// Fees are the price of the leaf's expected_leaf_cost(), times the tokens of the text: comparable with
  /// gains of likelihood. entry_fee is that of a word of so many tokens that comes to a cluster, refund what
  /// it paid in the cluster where it is.
  [[nodiscard]] double entry_fee(int64_t cluster, int64_t count) const;
  [[nodiscard]] double refund(int64_t cluster, int64_t count) const;
  /// What all words pay.
  [[nodiscard]] double fees() const;
  /// Subtracts from each cluster's gain its entry_fee() to first order in `count`.
  void subtract_fees(int64_t count, std::span<double> gain) const;

 private:
  [[nodiscard]] double fee(const ClusterLoad& load) const;

  ClusterLimits limits_;
  int64_t total_;
  double price_;  // of a nanosecond of a step
  std::vector<ClusterLoad> loads_;
  std::vector<double> base_;   // entry_fee() of a word without tokens
  std::vector<double> slope_;  // and what a token adds
};

}  // namespace hsm
