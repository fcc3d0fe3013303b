#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "decode/arena.h"
#include "decode/candidates.h"
#include "decode/fixed_vector.h"
#include "decode/options.h"
#include "decode/row_engine.h"
#include "decode/word_draw.h"

namespace hsm {

/// Draws among the best words of a row: the k best (top-k), the fewest best that have a share p of the
/// probability of all allowed words (top-p), or, with both, those in both sets. The sets are those of the
/// model's own distribution; the temperature then applies within them.
class TruncatedSampler : public WordSampler {
 public:
  TruncatedSampler(Arena& arena, RowEngine& engine, const SamplingOptions& options, int64_t max_rows);

  /// Draws of one row must stand together, and agree about the end symbol.
  void run(std::span<WordDraw> draws) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override {
    return search_->possible_expansions();
  }

 private:
  using Draws = std::span<WordDraw>;

  void group(std::span<WordDraw> draws);
  /// The set of a row; empty when more of the best words are needed to know it.
  [[nodiscard]] std::span<const Candidate> cut(double mass, std::span<const Candidate> ranked,
                                               int64_t asked) const;
  void draw(Draws draws, std::span<const Candidate> set) const;
  void draw_from_more(Draws draws, double mass);

  SamplingOptions options_;
  CounterRandom random_;
  int64_t limit_;  ///< words of the largest set
  int64_t ask_;    ///< words asked for at first
  std::unique_ptr<WordSearch> search_;
  std::unique_ptr<AllowedMass> allowed_mass_;
  std::span<Candidate> memory_;  ///< ask_ + 1 a row
  std::span<Candidate> large_;   ///< for a row that needs more
  FixedVector<Draws> rows_;
  FixedVector<MassQuestion> masses_;  ///< of the rows, where top-p asks for them
  FixedVector<CandidateQuery> queries_;
};

}  // namespace hsm
