#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "classes/word_classes.h"
#include "text/vocabulary.h"

namespace hsm {

/// What the bins have equal sums of. A word never seen weighs as one seen once.
enum class BinWeight { count, square_root };

/// "count" or "sqrt"; UsageError else.
BinWeight parse_bin_weight(std::string_view name);

/// Words in order of rank without the reserved symbols, ready to be cut into a shortlist and bins.
class RankedWords {
 public:
  RankedWords(const Vocabulary& vocabulary, BinWeight weight);

  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(ids_.size()); }
  [[nodiscard]] int32_t id(int64_t rank) const { return ids_[static_cast<size_t>(rank)]; }
  /// Ranks below this are words with an id below `shortlist`.
  [[nodiscard]] int64_t first_binned(int64_t shortlist) const;
  /// Training count of ranks [first, last).
  [[nodiscard]] int64_t count(int64_t first, int64_t last) const {
    return counts_[static_cast<size_t>(last)] - counts_[static_cast<size_t>(first)];
  }
  /// Cuts ranks [first, size()) into `bins` runs of nearly equal sums, each with a word at least, and returns
  /// where each ends. A bin takes words until it is as near as can be to its share of what is left, so one
  /// heavy word doesn't starve those after it. 1 ≤ bins ≤ size() − first. Takes O(bins · log size()).
  [[nodiscard]] std::vector<int64_t> cut(int64_t first, int64_t bins) const {
    return cut(first, size(), bins, size());
  }
  /// The same for ranks [first, last) and bins of at most `most` words, last − first ≤ bins · most.
  [[nodiscard]] std::vector<int64_t> cut(int64_t first, int64_t last, int64_t bins, int64_t most) const;

 private:
  std::vector<int32_t> ids_;
  std::vector<double> weights_;  // sums of the weights of all words before a rank
  std::vector<int64_t> counts_;  // and of their counts
};

/// UsageError, naming the limits, when `clustered` words below a shortlist can't fill so many clusters.
void check_class_sizes(const Vocabulary& vocabulary, int64_t shortlist, int64_t clusters, int64_t clustered);

/// A shortlist of the words with an id below `shortlist`, and of the reserved symbols; the others in
/// `clusters` bins of equal sum in order of rank, none empty. UsageError, naming the limits, when that can't
/// be.
WordClasses frequency_classes(const Vocabulary& vocabulary, BinWeight weight, int64_t shortlist,
                              int64_t clusters);

}  // namespace hsm
