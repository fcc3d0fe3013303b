#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/options.h"
#include "decode/row_batch.h"
#include "decode/word_draw.h"
#include "decode/word_filter.h"

namespace hsm {

/// Draws from the whole vocabulary without computing it: a column at the root, then a leaf.
///
/// With a = 1/T a cluster's mass is P(c)^a · Z_c, Z_c = Σ P(w|c)^a over its allowed words, unknown before it
/// is expanded but at most P(c)^a · |c|^max(0, 1−a). So a column is proposed by that bound, the cluster
/// expanded, and accepted with mass over bound; a rejected cluster's bound is replaced by its mass, so that
/// each is rejected at most once. At T = 1 that is one expansion a word.
class AncestralSampler : public WordSampler {
 public:
  /// Rows, expander and filter outlive the object.
  AncestralSampler(Arena& arena, const RowBatch& rows, Expander& expander, const WordFilter& filter,
                   const SamplingOptions& options, int64_t max_draws);

  void run(std::span<WordDraw> draws) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override { return possible_; }

 private:
  /// A draw under way.
  struct Trial {
    int32_t count;   ///< proposals so far
    int32_t column;  ///< proposed at the root, or negative when nothing is left
  };

  [[nodiscard]] std::span<float> log_weights(size_t draw) const;
  void prepare(const WordDraw& draw, std::span<float> log_weights, std::span<const float> root) const;
  void propose(size_t index, const WordDraw& draw, int worker);
  void settle(std::span<WordDraw> draws);
  void settle(WordDraw& draw, const Expansion& item, std::span<const float> leaves);

  const RowBatch* rows_;
  Expander* expander_;
  const WordFilter* filter_;
  const Scorer* scorer_;
  CounterRandom random_;
  double power_;  ///< 1/T
  int64_t root_size_;
  int64_t possible_ = 0;
  std::span<float> log_weights_;  ///< of root columns, a row a draw
  std::span<Trial> trials_;
  std::span<int32_t> pending_;
  std::span<double> scratch_;  ///< a root row a worker, and one cluster's leaves
  int64_t scratch_size_;
};

}  // namespace hsm
