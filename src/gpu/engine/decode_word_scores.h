#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "decode/sequence_scorer.h"
#include "decode/word_draw.h"
#include "decode/word_filter.h"
#include "decode/word_lookup.h"
#include "gpu/engine/decode_rows.h"

namespace hsm {

/// Log-probabilities of given words after rows of the batch, by the device's kernels.
class DecodeWordScores {
 public:
  struct Question {
    int32_t row = 0;
    int32_t word = 0;
    double log_prob = 0;  ///< the answer, double(root) + double(leaf)
  };

  /// Rows outlive the object.
  DecodeWordScores(Arena& host, DeviceArena& device, DecodeRows& rows);

  /// Questions that are answered together.
  [[nodiscard]] int64_t capacity() const noexcept { return capacity_; }
  /// DataError when the model's scores are not numbers.
  void run(std::span<Question> questions);

 private:
  void run_together(std::span<Question> questions);

  struct Places {
    explicit Places(int64_t count)
        : pair(layout.add<kernels::device::Ranked>(count)),
          pair_count(layout.add<int32_t>(count)),
          row(layout.add<int32_t>(count)),
          column(layout.add<int32_t>(count)),
          leaf(layout.add<int32_t>(count)) {}
    BlockLayout layout;
    BlockLayout::Place<kernels::device::Ranked> pair;
    BlockLayout::Place<int32_t> pair_count;
    BlockLayout::Place<int32_t> row;
    BlockLayout::Place<int32_t> column;
    BlockLayout::Place<int32_t> leaf;
  };

  DecodeRows* rows_;
  int64_t capacity_;
  Places places_;
  MirroredBlock memory_;
  std::span<double> log_probs_;
  kernels::device::WordScorePass pass_;
};

/// Feeds outputs in the batch's spare states.
class DecodeSequenceScorer : public SequenceScorer {
 public:
  /// Rows and scores outlive the object.
  DecodeSequenceScorer(Arena& host, DeviceArena& device, DecodeRows& rows, DecodeWordScores& scores,
                       int64_t slots, int64_t max_sequences);

  void remember(int64_t slot, int32_t row) override;
  void run(std::span<const ScoredSequence> sequences, int64_t slot, int32_t first_token) override;

 private:
  DecodeRows* rows_;
  DecodeWordScores* scores_;
  DeviceStates origins_;  ///< a row a slot
  std::span<int32_t> order_;
  std::span<int32_t> tokens_;
  std::span<DecodeWordScores::Question> questions_;
};

class DecodeWordLookup : public WordLookup {
 public:
  /// Scores outlive the object.
  DecodeWordLookup(Arena& host, DecodeWordScores& scores, int64_t capacity);

  void ask(const WordQuestion& question, const Take& take) override;
  void flush(const Take& take) override;

 private:
  DecodeWordScores* scores_;
  std::span<WordQuestion> open_;
  std::span<DecodeWordScores::Question> questions_;
  size_t count_ = 0;
};

/// Asks for each word that may not be generated.
class DecodeAllowedMass : public AllowedMass {
 public:
  /// Rows and scores outlive the object.
  DecodeAllowedMass(Arena& host, const DecodeRows& rows, DecodeWordScores& scores, const WordFilter& filter);

  void run(std::span<MassQuestion> questions) override;

 private:
  DecodeWordScores* scores_;
  int32_t end_of_sentence_;
  bool end_filtered_ = false;
  std::vector<int32_t> filtered_;
  std::span<DecodeWordScores::Question> open_;
  std::span<int32_t> owner_;
};

}  // namespace hsm
