#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "kernels/head.h"

namespace hsm::kernels {

/// A cluster of at least two words to which targets of the batch belong.
struct HitCluster {
  int64_t cluster = 0;
  int64_t first_token = 0;  ///< its tokens' place in HeadPlan::tokens
  int64_t tokens = 0;
  bool factored = false;     ///< whether its rows' gradient stays in factors
  int64_t gradient_row = 0;  ///< else, place of its first row among the rows with gradients
};

/// The tokens of a batch in the order in which the head works through them.
struct HeadPlan {
  std::vector<int64_t> tokens;       ///< those with a target, stably sorted: shortlist, then by cluster
  std::vector<int64_t> root_column;  ///< of each of them: what it has to hit at the root
  std::vector<int64_t> leaf_column;  ///< and within its cluster; 0 for shortlist words
  std::vector<HitCluster> hits;      ///< ascending
  int64_t gradient_rows = 0;         ///< shortlist and the rows of hits that are not factored
  std::vector<int64_t> places;       ///< scratch of the sort

  /// `factors`: leave gradients in factors where that pays (LeafFactors::pays).
  void make(const HeadShape& shape, std::span<const int64_t> targets, bool factors);
};

}  // namespace hsm::kernels
