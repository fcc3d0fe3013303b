#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "classes/word_classes.h"
#include "text/vocabulary.h"

namespace hsm {

/// A training step of the head: what its cost depends on besides the classes.
struct StepShape {
  int64_t head_dim = 0;  ///< D
  int64_t tokens = 0;    ///< N, tokens of a batch
};

/// Words of a cluster, and how often they were seen in training.
struct ClusterLoad {
  int64_t words = 0;
  int64_t count = 0;
};

/// Expected time of the head in a training step on one core, in nanoseconds, by a table of measured costs
/// that is compiled in (docs/classes.md has it): timing at run time would give other classes on each run.
///   root:  N·R·(6·D·f + e) + R·D·u,  R = shortlist + clusters
///   leaf:  Σ_c N·P_c·|c|·(6·D·f + e) + q_c·|c|·D·u,  q_c = 1 − (1 − P_c)^N,  |c| > 1
/// `total` is the number of training tokens, so P_c = count / total.
double expected_step_cost(const StepShape& step, int64_t shortlist, std::span<const ClusterLoad> clusters,
                          int64_t total);

/// What a cluster of such a load adds to it.
double expected_leaf_cost(const StepShape& step, const ClusterLoad& cluster, int64_t total);

/// Loads of the clusters of `classes`.
std::vector<ClusterLoad> cluster_loads(const Vocabulary& vocabulary, const WordClasses& classes);

/// The same for classes of any making.
double expected_step_cost(const StepShape& step, const Vocabulary& vocabulary, const WordClasses& classes);

}  // namespace hsm
