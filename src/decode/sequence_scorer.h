#pragma once
#include <cstdint>
#include <span>

namespace hsm {

/// One sequence of tokens that follows a state.
struct ScoredSequence {
  std::span<const int32_t> tokens;
  std::span<double> log_probs;  ///< one a token, to be filled
};

/// Scores outputs of a search in one pass between two of its steps, so that the search needn't keep the
/// scores of words. Each log-probability is double(root) + double(leaf).
class SequenceScorer {
 public:
  virtual ~SequenceScorer() = default;
  /// Remembers for a slot the state of a row of the last step, or the zero state for kZeroState.
  virtual void remember(int64_t slot, int32_t row) = 0;
  /// All sequences follow the slot's state and then `first_token`.
  virtual void run(std::span<const ScoredSequence> sequences, int64_t slot, int32_t first_token) = 0;
};

/// The numbers of the sequences, longest first, so that rows only fall away at the end. Allocates nothing.
void order_longest_first(std::span<const ScoredSequence> sequences, std::span<int32_t> order);

}  // namespace hsm
