#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/arena.h"
#include "decode/candidates.h"
#include "decode/fixed_vector.h"
#include "decode/options.h"
#include "decode/row_engine.h"
#include "decode/strategy.h"

namespace hsm {

/// The most probable next words after each prompt, the end symbol among them, with the model's own
/// probabilities (not rescaled for words that were filtered out).
class NextWords : public Strategy {
 public:
  NextWords(Arena& arena, const NextWordOptions& options, RowEngine& engine, int64_t slots);

  [[nodiscard]] int64_t rows_per_input() const override { return 1; }
  void begin(int64_t slot, const Prompt& prompt, const RowSource& source) override;
  [[nodiscard]] std::span<const RowSource> wanted(int64_t slot) const override;
  void step(std::span<const ActiveInput> active) override;
  void write(int64_t slot, const Prompt& prompt, ResultSink& sink) override;
  void report(DecodeStats& stats) const override {
    stats.possible_expansions = search_->possible_expansions();
  }

 private:
  struct Slot {
    RowSource source;
    bool done = false;
    std::vector<int32_t> seen;    ///< words of the prompt, ascending
    std::span<Candidate> memory;  ///< words, then one place for the end symbol
    std::span<const Candidate> result;
  };

  void rank(Slot& slot, CandidateQuery& query) const;

  NextWordOptions options_;
  std::unique_ptr<WordSearch> search_;
  std::vector<Slot> slots_;
  FixedVector<CandidateQuery> queries_;
};

}  // namespace hsm
