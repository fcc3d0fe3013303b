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
                    int64_t most, int64_t total) {
  std::vector<ClusterLoad> loads;
  int64_t begin = first;
  for (const int64_t end : words.cut(first, words.size(), bins, most)) {
    loads.push_back({end - begin, words.count(begin, end)});
    begin = end;
  }
  return expected_step_cost(step, first + kReserved, loads, total);
}

std::vector<int64_t> shortlists(const SizeRequest& request, int64_t vocabulary, int64_t words) {
  if (request.shortlist) return {*request.shortlist};
  const int64_t left = std::max<int64_t>(0, words - request.clusters.value_or(1));
  const int64_t shortest = std::min({int64_t{200}, vocabulary / 10, left});
  return grid(shortest, std::max(shortest, std::min(vocabulary / 2, left)));
}

// Numbers of clusters for so many words.
std::vector<int64_t> cluster_numbers(const SizeRequest& request, int64_t binned) {
  if (request.clusters) return {*request.clusters};
  const int64_t most = std::max<int64_t>(1, std::min(binned, request.most_clusters));
  const int64_t fewest = request.largest == 0 ? 1 : with_room(binned, request.largest);
  return grid(std::min(most, fewest), most);
}

}  // namespace

int64_t with_room(int64_t words, int64_t each) {
  return (3 * words + 2 * each - 1) / (2 * each);
}

ClassSizes choose_class_sizes(const Vocabulary& vocabulary, BinWeight weight, const StepShape& step,
                              const SizeRequest& request) {
  if (request.shortlist && request.clusters) return {*request.shortlist, *request.clusters};
  const RankedWords words(vocabulary, weight);
  const int64_t total = vocabulary.total_count();
  const int64_t most_words = request.largest == 0 ? words.size() : request.largest;
  const std::vector<int64_t> candidates = shortlists(request, vocabulary.size(), words.size());
  // Where none of them can be met, those of the fewest words in clusters are refused with the nearest limits.
  ClassSizes best{candidates.back(),
                  cluster_numbers(request, words.size() - words.first_binned(candidates.back())).back()};
  double least = std::numeric_limits<double>::infinity();
  for (const int64_t k : candidates) {
    const int64_t first = words.first_binned(k);
    const int64_t binned = words.size() - first;
    if (binned < request.clusters.value_or(1)) continue;
    for (const int64_t c : cluster_numbers(request, binned)) {
      // From here on the root alone costs more, and it only grows.
      if (expected_step_cost(step, first + kReserved + c, {}, total) > least) break;
      if (c * most_words < binned) continue;
      const double cost = cost_of_bins(words, step, first, c, most_words, total);
      if (cost < least) {
        least = cost;
        best = {k, c};
      }
    }
  }
  return best;
}

}  // namespace hsm
