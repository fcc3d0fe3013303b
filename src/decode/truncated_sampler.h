#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "decode/candidates.h"
#include "decode/fixed_vector.h"
#include "decode/word_draw.h"

namespace hsm {

/// Draws among the best words of a row: the k best (top-k), the fewest best that have a share p of the
/// probability of all allowed words (top-p), or, with both, those in both sets. The sets are those of the
/// model's own distribution; the temperature then applies within them.
class TruncatedSampler : public WordSampler {
 public:
  TruncatedSampler(Arena& arena, const Scorer& scorer, const SamplingOptions& options,
                   const WordFilter& filter, int64_t max_rows);

  /// Draws of one row must stand together, and agree about the end symbol.
  void run(std::span<WordDraw> draws, const RowBatch& rows, Expander& expander,
           const WordFilter& filter) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override {
    return search_.possible_expansions();
  }

 private:
  /// Draws of one row, and their set.
  struct Row {
    std::span<WordDraw> draws;
    double allowed_mass = 1;
  };

  void group(std::span<WordDraw> draws);
  void subtract_blocked(const RowBatch& rows, Expander& expander, const WordFilter& filter);
  void subtract_blocked_leaves(const RowBatch& rows, Expander& expander, const WordFilter& filter);
  [[nodiscard]] bool blocked(const Row& row, int32_t word, const WordFilter& filter) const;
  [[nodiscard]] std::span<const Candidate> answer(CandidateQuery& query, std::span<Candidate> memory) const;
  /// The set of a row; empty when more of the best words are needed to know it.
  [[nodiscard]] std::span<const Candidate> cut(const Row& row, std::span<const Candidate> ranked,
                                               int64_t asked) const;
  void draw(const Row& row, std::span<const Candidate> set) const;
  void draw_from_more(const Row& row, const RowBatch& rows, Expander& expander, const WordFilter& filter);

  const Scorer* scorer_;
  SamplingOptions options_;
  CounterRandom random_;
  int64_t limit_;  ///< words of the largest set
  int64_t ask_;    ///< words asked for at first
  CandidateSearch search_;
  std::span<Candidate> memory_;            ///< ask_ + 1 a row
  std::span<Candidate> large_;             ///< for a row that needs more
  std::vector<int32_t> blocked_clusters_;  ///< that hold a word which may be blocked
  FixedVector<Row> rows_;
  FixedVector<CandidateQuery> queries_;
};

}  // namespace hsm
