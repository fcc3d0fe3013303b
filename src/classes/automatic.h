#pragma once
#include <cstdint>
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

/// The sizes, of those on a grid, whose bins have the least expected_step_cost(); a size that is given stays.
/// A chosen shortlist has at least 200 words (a tenth of a small vocabulary), because a shorter one costs
/// perplexity. UsageError when a given size can't be met.
ClassSizes choose_class_sizes(const Vocabulary& vocabulary, BinWeight weight, const StepShape& step,
                              std::optional<int64_t> shortlist, std::optional<int64_t> clusters);

}  // namespace hsm
