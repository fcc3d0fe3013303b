#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/row_batch.h"

namespace hsm {

/// One sequence of tokens that follows a state.
struct ScoredSequence {
  std::span<const int32_t> tokens;
  std::span<double> log_probs;  ///< one a token, to be filled
};

/// Scores sequences of words in one pass between two steps of a search, in the buffers of its rows, so that
/// the search needn't keep the scores of words. Each log-probability is double(root) + double(leaf).
class SequenceScorer {
 public:
  /// For at most `max_sequences` at a time, no more than the batch has rows.
  SequenceScorer(Arena& arena, const Scorer& scorer, int64_t max_sequences);

  /// All sequences follow `state` and then `first_token`.
  void run(std::span<const ScoredSequence> sequences, std::span<const float> state, int32_t first_token,
           RowBatch& rows, Expander& expander);

 private:
  void read(std::span<const ScoredSequence> sequences, int64_t position, int64_t count, const RowBatch& rows,
            Expander& expander);
  void harvest(std::span<const ScoredSequence> sequences, int64_t position, const RowBatch& rows,
               Expander& expander);

  const Scorer* scorer_;
  std::span<int32_t> order_;  ///< sequences by row: longest first, so that rows only fall away at the end
  std::span<int32_t> tokens_;
};

}  // namespace hsm
