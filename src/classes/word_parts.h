#pragma once
#include <cstdint>
#include <vector>

#include "classes/frequency.h"
#include "text/vocabulary.h"

namespace hsm {

/// Words by what clustering does with them. The most frequent of those that are not on the shortlist are
/// items [0, moving), in order of rank. Item moving + i is fixed group i: a word of the shortlist, or all
/// words of which none has an item of its own.
struct WordParts {
  int64_t clusters = 0;
  int64_t moving = 0;
  int64_t fixed = 0;
  std::vector<int32_t> item_of;     ///< by public id
  std::vector<int32_t> moving_ids;  ///< by item
  std::vector<int32_t> rare_ids;    ///< the other words below the shortlist, in order of rank

  [[nodiscard]] int64_t items() const noexcept { return moving + fixed; }
  /// Clusters, then the fixed groups.
  [[nodiscard]] int64_t groups() const noexcept { return clusters + fixed; }
};

/// Words with a rank below `first` are the shortlist, at most `most_moving` move (or as many as there are
/// clusters).
WordParts part_words(const Vocabulary& vocabulary, const RankedWords& words, int64_t first, int64_t clusters,
                     int64_t most_moving);

}  // namespace hsm
