#pragma once
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "decode/arena.h"
#include "decode/row_engine.h"
#include "decode/scorer.h"

namespace hsm {

/// Rows in host memory. There are two state buffers: step() gathers the rows that go on from the
/// current one into the other, feeds them there, and the buffers swap roles, so nothing of a step outlives
/// the next.
class RowBatch {
 public:
  /// With `carries`, rows may be carried over a step.
  RowBatch(Arena& arena, const Scorer& scorer, int64_t max_rows, ThreadPool& pool, bool carries = false);

  /// Makes the rows' states, and root log-probabilities of the first `scored` of them. DataError when the
  /// model's scores are not numbers.
  void step(std::span<const RowSource> sources, int64_t scored);

  /// States of the last step's rows.
  [[nodiscard]] std::span<const float> state(int64_t row) const;
  /// Of the last scored rows: what the head reads, and [shortlist + clusters] log-probabilities.
  [[nodiscard]] const float* head(int64_t row) const { return heads_[head_].data() + row * head_size_; }
  [[nodiscard]] std::span<const float> root(int64_t row) const;

  /// States that the next step() overwrites: room for a pass of another kind between two steps, which
  /// overwrites head() and root(), too.
  [[nodiscard]] std::span<float> spare_states() noexcept { return states_[1 - current_]; }
  /// Feeds tokens[i] to row i of `states` in place and makes root log-probabilities of the first `scored`.
  void feed(std::span<float> states, std::span<const int32_t> tokens, int64_t scored);

  [[nodiscard]] const Scorer& scorer() const noexcept { return *scorer_; }
  [[nodiscard]] ThreadPool& pool() const noexcept { return *pool_; }

 private:
  /// Calls body(first row, rows, worker) for pieces of `rows` rows, in parallel when they are many.
  template <class Body>
  void for_pieces(int64_t rows, const Body& body);
  void advance(std::span<const int32_t> tokens, float* states, float* heads, float* scratch) const;

  const Scorer* scorer_;
  ThreadPool* pool_;
  int64_t state_size_;
  int64_t head_size_;
  int64_t root_size_;
  int64_t max_piece_;  ///< rows that a worker's scratch is good for
  int64_t scratch_size_;
  std::span<float> states_[2];
  int current_ = 0;
  bool carries_;
  std::span<float> heads_[2];  ///< the second only where rows are carried: they swap roles like the states
  int head_ = 0;
  std::span<float> root_;
  std::span<float> scratch_;
  std::span<int32_t> tokens_;
};

}  // namespace hsm
