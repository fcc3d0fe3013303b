#pragma once
#include <cstdint>
#include <span>

namespace hsm {

/// Where a word stands in the two levels.
struct WordPlace {
  int32_t cluster = -1;  ///< negative: a shortlist word
  int32_t index = 0;     ///< column at the root, or leaf within the cluster
};

/// What the search asks of a model. Two-level: root columns are shortlist words, then clusters; each column
/// below shortlist() and each leaf is a word, named by its public id. Buffers belong to the caller, and an
/// implementation allocates nothing in these calls; its results for a row depend on that row alone, to the
/// bit. All calls may come from several threads at once, with buffers that don't overlap. The real one is
/// model_scorer.h; tests script their own.
class Scorer {
 public:
  virtual ~Scorer() = default;

  [[nodiscard]] virtual int64_t words() const = 0;
  [[nodiscard]] virtual int64_t shortlist() const = 0;
  [[nodiscard]] virtual int64_t clusters() const = 0;
  /// Public id of each shortlist column, and of each leaf of a cluster, in the order of the scores.
  [[nodiscard]] virtual std::span<const int32_t> shortlist_words() const = 0;
  [[nodiscard]] virtual std::span<const int32_t> cluster_words(int64_t cluster) const = 0;
  /// The inverse of the two above.
  [[nodiscard]] virtual WordPlace place(int32_t word) const = 0;
  [[nodiscard]] virtual int32_t end_of_sentence() const = 0;

  /// Floats of one hypothesis's state (all zero at the start), and of what the head reads.
  [[nodiscard]] virtual int64_t state_size() const = 0;
  [[nodiscard]] virtual int64_t head_size() const = 0;
  /// Floats of scratch that advance() needs for so many rows.
  [[nodiscard]] virtual int64_t scratch_size(int64_t rows) const = 0;

  /// Feeds tokens[i] to state row i, in place ([rows, state_size]); `head` [rows, head_size] gets what the
  /// two functions below read.
  virtual void advance(std::span<const int32_t> tokens, float* state, float* head, float* scratch) const = 0;
  /// [rows, shortlist + clusters] log-probabilities. A row that isn't numbers is NaN in its first column.
  virtual void root(const float* head, int64_t rows, float* log_probs) const = 0;
  /// [heads.size(), words of the cluster] log-probabilities within it, each ≤ 0. Not asked of a cluster of
  /// one word, which has probability 1 there. A row that isn't numbers is NaN in its first column.
  virtual void leaves(int64_t cluster, std::span<const float* const> heads, float* log_probs) const = 0;
};

}  // namespace hsm
