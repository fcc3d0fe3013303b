#pragma once
#include <cstdint>
#include <limits>
#include <optional>

#include "classes/frequency.h"
#include "classes/step_cost.h"
#include "text/vocabulary.h"

namespace hsm {

/// Sizes as frequency_classes() takes them.
struct ClassSizes {
  int64_t shortlist = 0;
  int64_t clusters = 0;
};

/// How many clusters of `each` words have room for half as many words again as `words`; or, the other way
/// round, how many words each of so many clusters must have room for.
int64_t with_room(int64_t words, int64_t each);

/// What is asked of sizes. One that isn't given is chosen.
struct SizeRequest {
  std::optional<int64_t> shortlist{};
  std::optional<int64_t> clusters{};
  /// Most words of a cluster, 0: any number. Where there are enough clusters to choose, they hold two thirds
  /// of it on average, or less: exchange moves words only to where there is room.
  int64_t largest = 0;
  int64_t most_clusters = std::numeric_limits<int64_t>::max();  ///< of those that are chosen
};

/// The sizes, of those on a grid, whose bins have the least expected_step_cost(); a size that is given stays.
/// A chosen shortlist has at least 200 words (a tenth of a small vocabulary), because a shorter one costs
/// perplexity, unless the clusters that are given need the words. Whether given sizes can be met is for those
/// to say who make the classes.
ClassSizes choose_class_sizes(const Vocabulary& vocabulary, BinWeight weight, const StepShape& step,
                              const SizeRequest& request);

}  // namespace hsm
