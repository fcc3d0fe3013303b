#include "classes/frequency.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "base/utf8.h"

namespace hsm {

BinWeight parse_bin_weight(std::string_view name) {
  if (name == "count") return BinWeight::count;
  if (name == "sqrt") return BinWeight::square_root;
  throw UsageError("classes.weight: " + quote(name) + " given, expected \"count\" or \"sqrt\"");
}

RankedWords::RankedWords(const Vocabulary& vocabulary, BinWeight weight) {
  weights_.push_back(0);
  counts_.push_back(0);
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    if (id == vocabulary.unknown() || id == vocabulary.end_of_sentence()) continue;
    const auto count = static_cast<double>(std::max<int64_t>(1, vocabulary.count(id)));
    ids_.push_back(id);
    weights_.push_back(weights_.back() + (weight == BinWeight::count ? count : std::sqrt(count)));
    counts_.push_back(counts_.back() + vocabulary.count(id));
  }
}

int64_t RankedWords::first_binned(int64_t shortlist) const {
  return std::lower_bound(ids_.begin(), ids_.end(), shortlist) - ids_.begin();
}

std::vector<int64_t> RankedWords::cut(int64_t first, int64_t last, int64_t bins, int64_t most) const {
  std::vector<int64_t> ends;
  ends.reserve(static_cast<size_t>(bins));
  const double all = weights_[static_cast<size_t>(last)];
  for (int64_t left = bins; left > 1; --left) {
    const double before = weights_[static_cast<size_t>(first)];
    const double target = before + (all - before) / static_cast<double>(left);
    // The sum is nearest to the target at the first rank that reaches it, or one before.
    const auto reached = std::lower_bound(weights_.begin() + first, weights_.begin() + last, target);
    int64_t end = reached - weights_.begin();
    const auto at = static_cast<size_t>(end);
    if (target - weights_[at - 1] < weights_[at] - target) --end;
    const int64_t fewest = std::max<int64_t>(1, last - first - (left - 1) * most);
    end = std::clamp(end, first + fewest, std::min(first + most, last - (left - 1)));
    ends.push_back(end);
    first = end;
  }
  ends.push_back(last);
  return ends;
}

void check_class_sizes(const Vocabulary& vocabulary, int64_t shortlist, int64_t clusters, int64_t clustered) {
  if (shortlist < 0) {
    throw UsageError("classes.shortlist: " + std::to_string(shortlist) + " given, expected 0 or more");
  }
  if (clustered == 0) {
    throw UsageError("classes.shortlist: " + std::to_string(shortlist) + " given, but the vocabulary has " +
                     std::to_string(vocabulary.size()) +
                     " words, of which at least one must be left for a cluster");
  }
  if (clusters < 1 || clusters > clustered) {
    throw UsageError("classes.clusters: " + std::to_string(clusters) + " given, expected 1 to " +
                     std::to_string(clustered) + ", the number of words that are not on the shortlist");
  }
}

WordClasses frequency_classes(const Vocabulary& vocabulary, BinWeight weight, int64_t shortlist,
                              int64_t clusters) {
  const RankedWords words(vocabulary, weight);
  const int64_t first = words.first_binned(shortlist);
  check_class_sizes(vocabulary, shortlist, clusters, words.size() - first);
  WordClasses classes;
  classes.cluster_of.assign(static_cast<size_t>(vocabulary.size()), kShortlist);
  classes.clusters = static_cast<int32_t>(clusters);
  int64_t rank = first;
  int32_t cluster = 0;
  for (const int64_t end : words.cut(first, clusters)) {
    for (; rank < end; ++rank) classes.cluster_of[static_cast<size_t>(words.id(rank))] = cluster;
    ++cluster;
  }
  return classes;
}

}  // namespace hsm
