#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "classes/word_classes.h"
#include "text/vocabulary.h"

namespace hsm::cli {

/// A cluster, or the shortlist, in numbers.
struct ClusterSummary {
  int64_t words = 0;
  int64_t tokens = 0;                   ///< of the training text
  std::vector<int32_t> frequent_words;  ///< the most frequent, as ids, at most kShown
  static constexpr size_t kShown = 8;
};

/// Classes in numbers.
struct ClassSummary {
  int64_t words = 0;
  int64_t tokens = 0;  ///< of the training text; 0 when the words have no counts
  ClusterSummary shortlist;
  std::vector<ClusterSummary> clusters;
  int64_t smallest = 0;  ///< words of a cluster
  int64_t largest = 0;
  double mean = 0;
  /// Part of the training tokens that stand on the shortlist.
  std::optional<double> root_share;
  /// Scores that are computed for the average training token: all at the root, and those of its cluster.
  std::optional<double> mean_scores;
};

ClassSummary summarise_classes(const HeadLayout& layout, const Vocabulary& vocabulary);

/// "100 clusters of 12 to 345 words, mean 98.0", and "200 words at the root, 62.3 % of the training tokens".
std::string describe_clusters(const ClassSummary& summary);
std::string describe_shortlist(const ClassSummary& summary);

/// "1 word", "12,345 words".
std::string plural(int64_t count, const char* noun);

}  // namespace hsm::cli
