#include "cli/class_summary.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>

#include "base/size.h"

namespace hsm::cli {
namespace {

// Rows [first, end) of the head; within them words stand by falling count.
ClusterSummary summarise_rows(const HeadLayout& layout, const Vocabulary& vocabulary, int64_t first,
                              int64_t end) {
  ClusterSummary summary;
  summary.words = end - first;
  for (int64_t row = first; row < end; ++row) {
    const int32_t word = layout.word_of_row[static_cast<size_t>(row)];
    summary.tokens += vocabulary.count(word);
    if (summary.frequent_words.size() < ClusterSummary::kShown) summary.frequent_words.push_back(word);
  }
  return summary;
}

}  // namespace

ClassSummary summarise_classes(const HeadLayout& layout, const Vocabulary& vocabulary) {
  ClassSummary summary;
  summary.words = layout.words();
  summary.tokens = vocabulary.total_count();
  summary.shortlist = summarise_rows(layout, vocabulary, 0, layout.shortlist());
  const auto& offsets = layout.cluster_offsets;
  double leaf_scores = 0;
  for (size_t c = 0; c + 1 < offsets.size(); ++c) {
    const ClusterSummary cluster = summarise_rows(layout, vocabulary, offsets[c], offsets[c + 1]);
    summary.smallest = c == 0 ? cluster.words : std::min(summary.smallest, cluster.words);
    summary.largest = std::max(summary.largest, cluster.words);
    if (cluster.words > 1) {  // a word alone has probability 1
      leaf_scores += static_cast<double>(cluster.tokens) * static_cast<double>(cluster.words);
    }
    summary.clusters.push_back(cluster);
  }
  if (!summary.clusters.empty()) {
    summary.mean =
        static_cast<double>(layout.words() - layout.shortlist()) / static_cast<double>(layout.clusters());
  }
  if (summary.tokens > 0) {
    const auto tokens = static_cast<double>(summary.tokens);
    summary.root_share = static_cast<double>(summary.shortlist.tokens) / tokens;
    summary.mean_scores = static_cast<double>(layout.shortlist() + layout.clusters()) + leaf_scores / tokens;
  }
  return summary;
}

std::string describe_clusters(const ClassSummary& summary) {
  return plural(static_cast<int64_t>(summary.clusters.size()), "cluster") +
         fmt::format(" of {} to {} words, mean {:.1f}", format_count(summary.smallest),
                     format_count(summary.largest), summary.mean);
}

std::string describe_shortlist(const ClassSummary& summary) {
  std::string text = plural(summary.shortlist.words, "word") + " at the root";
  if (summary.root_share) text += fmt::format(", {:.1f} % of the training tokens", 100 * *summary.root_share);
  return text;
}

std::string plural(int64_t count, const char* noun) {
  return format_count(count) + " " + noun + (count == 1 ? "" : "s");
}

}  // namespace hsm::cli
