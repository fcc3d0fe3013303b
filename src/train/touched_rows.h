#pragma once
#include <cstdint>
#include <vector>

#include "classes/word_classes.h"
#include "text/batches.h"

namespace hsm {

/// Rows that the forward pass of a batch reads, ascending and distinct: of the embedding those of the
/// inputs, of the head's words the shortlist and each cluster that holds a target. With tied matrices both
/// are the union.
struct TouchedRows {
  std::vector<int64_t> embedding;
  std::vector<int64_t> head;
};

TouchedRows touched_rows(const Batch& batch, const HeadLayout& layout, bool tied);

}  // namespace hsm
