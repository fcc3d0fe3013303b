#include "classes/step_cost.h"

#include <algorithm>

namespace hsm {
namespace {

// Fitted to times of head_loss(), sum_of_squares() and update_rows() with float32 on one core (AVX-512), D
// 128 to 650, N 400 to 1,400, on the Penn Treebank and WikiText-2, by bench/head_cost.cpp.
constexpr double kFlop = 1.0 / 84;   // f, ns: the packed matrix product
constexpr double kLogit = 0.2;       // e, ns: exponential, loss and gradient of a logit
constexpr double kRowElement = 0.8;  // u, ns: weight packed, gradient or factors, norm, update

double logit_cost(const StepShape& step) {
  return 6 * static_cast<double>(step.head_dim) * kFlop + kLogit;
}

double row_cost(const StepShape& step) {
  return static_cast<double>(step.head_dim) * kRowElement;
}

// 1 − (1 − p)^n, by sums and products alone, so that it has the same bits on every machine.
double chance_of_any(double p, int64_t n) {
  double any = 0;
  for (double one = p; n > 0; n /= 2) {
    if (n % 2 == 1) any += one - any * one;
    one += one - one * one;
  }
  return any;
}

}  // namespace

double expected_leaf_cost(const StepShape& step, const ClusterLoad& cluster, int64_t total) {
  if (cluster.words <= 1) return 0;
  const auto tokens = static_cast<double>(step.tokens);
  const auto words = static_cast<double>(cluster.words);
  const double share = static_cast<double>(cluster.count) / static_cast<double>(std::max<int64_t>(1, total));
  const double hit = chance_of_any(std::min(share, 1.0), step.tokens);
  return words * (tokens * share * logit_cost(step) + hit * row_cost(step));
}

double expected_step_cost(const StepShape& step, int64_t shortlist, std::span<const ClusterLoad> clusters,
                          int64_t total) {
  const auto root = static_cast<double>(shortlist + static_cast<int64_t>(clusters.size()));
  double cost = root * (static_cast<double>(step.tokens) * logit_cost(step) + row_cost(step));
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
