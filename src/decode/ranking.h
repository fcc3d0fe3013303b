#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"

namespace hsm {

/// lp(n) = ((5 + n) / 6)^alpha: a hypothesis of n generated symbols (the end symbol counts, the prompt does
/// not) and log-probability s has the score s / lp(n).
class LengthPenalty {
 public:
  explicit LengthPenalty(double alpha) : alpha_(alpha) {}

  [[nodiscard]] double score(double log_prob, int64_t length) const;
  /// The best score that a hypothesis of this log-probability can still come to, when it ends with a length
  /// in [shortest, longest]. Log-probability only falls, so for a positive alpha the longest is best, for a
  /// negative one the shortest.
  [[nodiscard]] double bound(double log_prob, int64_t shortest, int64_t longest) const {
    return score(log_prob, alpha_ > 0 ? longest : shortest);
  }

 private:
  double alpha_;
};

/// A complete hypothesis of the beam search.
struct FinishedHypothesis {
  double score = 0;
  double log_prob = 0;
  int32_t node = 0;    ///< its last word in the pool
  int32_t length = 0;  ///< symbols generated, the end symbol included
  bool ended = false;  ///< with the end symbol; else by the length limit
};

/// The best complete hypotheses of one input; the earlier one first where scores are equal.
class FinishedList {
 public:
  FinishedList(Arena& arena, int64_t limit)
      : entries_(arena.take<FinishedHypothesis>(limit, "finished hypotheses")) {}

  void clear() noexcept { count_ = 0; }
  void add(const FinishedHypothesis& hypothesis);
  /// True when nothing of this score or a lower one would be taken.
  [[nodiscard]] bool closed_to(double score) const;
  [[nodiscard]] std::span<FinishedHypothesis> entries() const { return entries_.first(count_); }

 private:
  std::span<FinishedHypothesis> entries_;
  size_t count_ = 0;
};

}  // namespace hsm
