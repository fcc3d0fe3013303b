#include "classes/step_cost.h"

#include <algorithm>
#include <cmath>

namespace hsm {
namespace {

// Fitted to times of head_loss(), sum_of_squares() and update_rows() with float32 on one core, D 128 to 650,
// N 20 to 700, on WikiText-2.
constexpr double kFlop = 1.0 / 75;    // f, ns: the packed matrix product
constexpr double kLogit = 1;          // e, ns: exponential, loss and gradient of a logit
constexpr double kRowElement = 1.6;   // u, ns: weight packed; gradient cleared, written, read twice; update
constexpr double kClusterHit = 1000;  // h, ns: sorting, dispatch and edges of a product of its own
constexpr double kRowsLost = 2;       // n₀: a product of few rows takes as long as one with so many more

double logit_cost(const StepShape& step) {
  return 6 * static_cast<double>(step.head_dim) * kFlop + kLogit;
}

}  // namespace

double expected_leaf_cost(const StepShape& step, const ClusterLoad& cluster, int64_t total) {
  if (cluster.words <= 1) return 0;
  const auto tokens = static_cast<double>(step.tokens);
  const auto words = static_cast<double>(cluster.words);
  const double share = static_cast<double>(cluster.count) / static_cast<double>(std::max<int64_t>(1, total));
  const double hit = -std::expm1(tokens * std::log1p(-std::min(share, 1.0)));
  return (tokens * share + kRowsLost * hit) * words * logit_cost(step) +
         hit * (words * static_cast<double>(step.head_dim) * kRowElement + kClusterHit);
}

double expected_step_cost(const StepShape& step, int64_t shortlist, std::span<const ClusterLoad> clusters,
                          int64_t total) {
  const auto root = static_cast<double>(shortlist + static_cast<int64_t>(clusters.size()));
  double cost = (static_cast<double>(step.tokens) + kRowsLost) * root * logit_cost(step) +
                root * static_cast<double>(step.head_dim) * kRowElement;
  for (const ClusterLoad& cluster : clusters) cost += expected_leaf_cost(step, cluster, total);
  return cost;
}

std::vector<ClusterLoad> cluster_loads(const Vocabulary& vocabulary, const WordClasses& classes) {
  std::vector<ClusterLoad> loads(static_cast<size_t>(classes.clusters));
  for (int32_t word = 0; word < vocabulary.size(); ++word) {
    const int32_t cluster = classes.cluster_of[static_cast<size_t>(word)];
    if (cluster == kShortlist) continue;
    ClusterLoad& load = loads[static_cast<size_t>(cluster)];
    ++load.words;
    load.count += vocabulary.count(word);
  }
  return loads;
}

double expected_step_cost(const StepShape& step, const Vocabulary& vocabulary, const WordClasses& classes) {
  const std::vector<ClusterLoad> loads = cluster_loads(vocabulary, classes);
  int64_t shortlist = vocabulary.size();
  for (const ClusterLoad& load : loads) shortlist -= load.words;
  return expected_step_cost(step, shortlist, loads, vocabulary.total_count());
}

}  // namespace hsm
