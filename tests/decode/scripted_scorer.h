#pragma once
#include <cstdint>
#include <functional>
#include <random>
#include <span>
#include <vector>

#include "decode/scorer.h"

namespace hsm::testing {

enum class Tables {
  smooth,  ///< normalised, random
  coarse,  ///< multiples of 1/4: many exact ties; not normalised
  zeros,   ///< normalised, a good part of the probabilities 0
};

struct ScriptedShape {
  std::vector<int32_t> shortlist;              ///< words at the root
  std::vector<std::vector<int32_t>> clusters;  ///< words of each cluster
  int32_t end = 0;
  int64_t contexts = 13;  ///< distinct distributions
};

/// A shape of `words` words in random places: `shortlist` of them at the root, the others in `clusters`
/// clusters of random sizes (some of one word). `end` is word `words` / 2, so that ids lie on both sides.
ScriptedShape random_shape(int32_t words, int32_t shortlist, int32_t clusters, uint32_t seed);

/// A two-level model that is a table: the distribution depends on the whole history through three independent
/// recurrences, one a float of the state, so a state that is mixed up or not moved with its hypothesis shows.
class ScriptedScorer : public Scorer {
 public:
  ScriptedScorer(ScriptedShape shape, Tables tables, uint32_t seed);

  [[nodiscard]] int64_t words() const override { return static_cast<int64_t>(places_.size()); }
  [[nodiscard]] int64_t shortlist() const override { return static_cast<int64_t>(shape_.shortlist.size()); }
  [[nodiscard]] int64_t clusters() const override { return static_cast<int64_t>(shape_.clusters.size()); }
  [[nodiscard]] std::span<const int32_t> shortlist_words() const override { return shape_.shortlist; }
  [[nodiscard]] std::span<const int32_t> cluster_words(int64_t cluster) const override {
    return shape_.clusters[static_cast<size_t>(cluster)];
  }
  [[nodiscard]] WordPlace place(int32_t word) const override { return places_[static_cast<size_t>(word)]; }
  [[nodiscard]] int32_t end_of_sentence() const override { return shape_.end; }
  [[nodiscard]] int64_t state_size() const override { return 3; }
  [[nodiscard]] int64_t head_size() const override { return 1; }
  [[nodiscard]] int64_t scratch_size(int64_t rows) const override { return rows; }

  void advance(std::span<const int32_t> tokens, float* state, float* head, float* scratch) const override;
  void root(const float* head, int64_t rows, float* log_probs) const override;
  void leaves(int64_t cluster, std::span<const float* const> heads, float* log_probs) const override;

  /// Overwrites the root or a cluster's table for every context: log-probabilities by column or leaf.
  void set_root(std::span<const float> log_probs);
  void set_leaves(int64_t cluster, std::span<const float> log_probs);

 private:
  ScriptedShape shape_;
  std::vector<WordPlace> places_;
  std::vector<std::vector<float>> root_;                 ///< by context
  std::vector<std::vector<std::vector<float>>> leaves_;  ///< by cluster, by context
};

/// Follows one history through a scorer, with buffers of its own: for oracles.
class History {
 public:
  explicit History(const Scorer& scorer);
  void feed(int32_t token);
  /// Log-probability of every word by id: double(root) + double(leaf).
  [[nodiscard]] std::vector<double> word_log_probs() const;

 private:
  const Scorer* scorer_;
  std::vector<float> state_;
  std::vector<float> head_;
  std::vector<float> scratch_;
};

}  // namespace hsm::testing
