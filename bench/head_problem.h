#pragma once
#include <ATen/ATen.h>

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <string>
#include <vector>

#include "base/random.h"

namespace hsm::bench {

/// Sizes of a head, and a batch of hidden states and targets for it. Clusters have equal sizes, but for the
/// last.
struct HeadProblem {
  int64_t tokens;
  int64_t dim;
  int64_t words;
  int64_t clusters;
  int64_t shortlist;

  [[nodiscard]] int64_t cluster_rows() const {
    return clusters == 0 ? 0 : (words - shortlist + clusters - 1) / clusters;
  }
  [[nodiscard]] std::vector<int64_t> cluster_offsets() const {
    std::vector<int64_t> offsets;
    for (int64_t c = 0; c <= clusters; ++c)
      offsets.push_back(std::min(words, shortlist + c * cluster_rows()));
    return offsets;
  }
  [[nodiscard]] std::vector<int32_t> cluster_of_row() const {
    std::vector<int32_t> clusters_of(static_cast<size_t>(words), -1);
    for (int64_t row = shortlist; row < words; ++row) {
      clusters_of[static_cast<size_t>(row)] = static_cast<int32_t>((row - shortlist) / cluster_rows());
    }
    return clusters_of;
  }
  /// Rows of the words of a text: row r with a probability like 1 / (r + 1), as Zipf's law has it.
  [[nodiscard]] std::vector<int64_t> targets() const {
    const CounterRandom random(1, Purpose::sampling);
    std::vector<int64_t> rows;
    for (int64_t i = 0; i < tokens; ++i) {
      const double draw = random.uniform(0, static_cast<uint64_t>(i));
      const double rank = std::pow(static_cast<double>(words + 1), draw) - 1;
      rows.push_back(std::min(words - 1, static_cast<int64_t>(rank)));
    }
    return rows;
  }
};

inline const HeadProblem kSmall{512, 128, 8192, 64, 200};
/// 256 streams, 50 steps.
inline const HeadProblem kHeadline{12800, 512, 51200, 512, 1000};

/// Bytes that a formulation holds beyond inputs, weights and their gradients, from the sizes of its tensors
/// alone.
struct HeadBytes {
  /// Level two as a padded tensor [C, D, M] of which each token gathers its cluster's slice: [N, D, M]
  /// forward, and its gradient in the backward pass. M is the largest cluster.
  static double gathered(const HeadProblem& p, int64_t largest_cluster, int64_t bytes_a_value) {
    return 2.0 * static_cast<double>(p.tokens * p.dim * largest_cluster * bytes_a_value);
  }
  /// Logits of all words, their log-softmax and its gradient.
  static double full(const HeadProblem& p, int64_t bytes_a_value) {
    return 3.0 * static_cast<double>(p.tokens * p.words * bytes_a_value);
  }
};

}  // namespace hsm::bench
