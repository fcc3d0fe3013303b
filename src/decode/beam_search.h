#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/arena.h"
#include "decode/candidates.h"
#include "decode/fixed_vector.h"
#include "decode/hypothesis_pool.h"
#include "decode/options.h"
#include "decode/ranking.h"
#include "decode/row_engine.h"
#include "decode/strategy.h"

namespace hsm {

/// Beam search: looks for the outputs x of highest score(x) = Σ log P(x_t | x_<t) / lp(|x|), where x ends
/// with the end symbol or has max_length symbols. docs/decoding.md states the rules.
class BeamSearch : public Strategy {
 public:
  BeamSearch(Arena& arena, const BeamOptions& options, RowEngine& engine, int64_t slots);

  [[nodiscard]] int64_t rows_per_input() const override { return options_.beam; }
  void begin(int64_t slot, const Prompt& prompt, const RowSource& source) override;
  [[nodiscard]] std::span<const RowSource> wanted(int64_t slot) const override;
  void step(std::span<const ActiveInput> active) override;
  void write(int64_t slot, const Prompt& prompt, ResultSink& sink) override;
  void report(DecodeStats& stats) const override;

 private:
  /// One input under search. Live hypotheses all have the same length; hypothesis i goes on from sources[i].
  struct Slot {
    Slot(Arena& arena, const BeamOptions& options);

    HypothesisPool pool;
    FinishedList finished;
    std::span<int32_t> nodes;       ///< of live hypotheses: last word in the pool
    std::span<int32_t> next_nodes;  ///< of those that come after them
    std::span<double> scores;       ///< log-probability
    std::span<RowSource> sources;   ///< row and word to feed
    std::span<Candidate> word_memory;
    std::span<Candidate> end_memory;
    std::span<int32_t> finished_nodes;  ///< scratch for collecting
    int32_t first_token = 0;
    int64_t live = 0;
    int64_t length = 0;
    bool done = false;
  };

  CandidateQuery query(Slot& slot, int64_t first_row) const;
  void take_in(Slot& slot, CandidateQuery& query, int64_t first_row) const;
  void finish(Slot& slot, const Candidate& candidate, int32_t node, bool ended) const;
  void collect(Slot& slot) const;
  [[nodiscard]] bool complete(const Slot& slot) const;

  BeamOptions options_;
  LengthPenalty penalty_;
  int32_t end_of_sentence_;
  std::unique_ptr<WordSearch> search_;
  std::vector<Slot> slots_;
  FixedVector<CandidateQuery> queries_;
  std::unique_ptr<SequenceScorer> sequence_scorer_;  ///< where scores of tokens are asked for
  FixedVector<ScoredSequence> outputs_;              ///< of the input being written
  std::span<int32_t> tokens_;
  std::span<double> token_log_probs_;
  int64_t tokens_written_ = 0;
};

}  // namespace hsm
