#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/row_batch.h"
#include "decode/sequence_scorer.h"

namespace hsm {

/// Works in the buffers of the rows, which are free between two steps.
class CpuSequenceScorer : public SequenceScorer {
 public:
  /// For at most `max_sequences` at a time, no more than the batch has rows. Rows and expander outlive the
  /// object.
  CpuSequenceScorer(Arena& arena, RowBatch& rows, Expander& expander, int64_t slots, int64_t max_sequences);

  void remember(int64_t slot, int32_t row) override;
  void run(std::span<const ScoredSequence> sequences, int64_t slot, int32_t first_token) override;

 private:
  [[nodiscard]] std::span<float> origin(int64_t slot) const;
  void read(std::span<const ScoredSequence> sequences, int64_t position, int64_t count);
  void harvest(std::span<const ScoredSequence> sequences, int64_t position);

  RowBatch* rows_;
  Expander* expander_;
  const Scorer* scorer_;
  std::span<float> origins_;  ///< a state a slot
  std::span<int32_t> order_;  ///< sequences by row: longest first, so that rows only fall away at the end
  std::span<int32_t> tokens_;
};

}  // namespace hsm
