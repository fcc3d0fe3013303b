#include "classes/automatic.h"

#include <algorithm>
#include <limits>
#include <vector>

namespace hsm {
namespace {

constexpr int64_t kReserved = 2;  // symbols that are always on the shortlist

// Whole numbers from `first` to `last`, each about 2^(1/4) times the one before.
std::vector<int64_t> grid(int64_t first, int64_t last) {
  constexpr double kRatio = 1.189207115002721;
  std::vector<int64_t> values;
  for (int64_t value = first; value < last;) {
    values.push_back(value);
    value = std::max(value + 1, static_cast<int64_t>(static_cast<double>(value) * kRatio));
  }
  values.push_back(last);
  return values;
}

double cost_of_bins(const RankedWords& words, const StepShape& step, int64_t first, int64_t bins,
                    int64_t total) {
  std::vector<ClusterLoad> loads;
  int64_t begin = first;
  for (const int64_t end : words.cut(first, bins)) {
    loads.push_back({end - begin, words.count(begin, end)});
    begin = end;
  }
  return expected_step_cost(step, first + kReserved, loads, total);
}

}  // namespace

ClassSizes choose_class_sizes(const Vocabulary& vocabulary, BinWeight weight, const StepShape& step,
                              std::optional<int64_t> shortlist, std::optional<int64_t> clusters) {
  if (shortlist && clusters) return {*shortlist, *clusters};
  const RankedWords words(vocabulary, weight);
  const int64_t total = vocabulary.total_count();
  const int64_t shortest = std::min<int64_t>(200, vocabulary.size() / 10);
  const int64_t longest = std::max(shortest, vocabulary.size() / 2);
  ClassSizes best{shortlist.value_or(shortest), clusters.value_or(1)};
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t k : shortlist ? std::vector{*shortlist} : grid(shortest, longest)) {
    const int64_t first = words.first_binned(k);
    const int64_t binned = words.size() - first;
    if (binned < clusters.value_or(1)) continue;
    for (const int64_t c : clusters ? std::vector{*clusters} : grid(1, binned)) {
      // From here on the root alone costs more, and it only grows.
      if (expected_step_cost(step, first + kReserved + c, {}, total) > least) break;
      const double cost = cost_of_bins(words, step, first, c, total);
      if (cost < least) {
        least = cost;
        best = {k, c};
      }
    }
  }
  return best;
}

}  // namespace hsm
