#pragma once
#include <cstdint>

#include "kernels/device/context.h"

namespace hsm::kernels::device {

/// Sizes of a pass of the head over one batch (names as in kernels/head.h).
struct HeadSizes {
  int64_t tokens = 0;     ///< N
  int64_t words = 0;      ///< V
  int64_t shortlist = 0;  ///< K
  int64_t clusters = 0;   ///< C
  int64_t dim = 0;        ///< D
  int64_t largest_cluster = 0;
  /// Rows of the N largest clusters together (of all, when there are fewer): more cannot be hit.
  int64_t most_hit_rows = 0;

  [[nodiscard]] HSM_HOST_DEVICE int64_t root() const { return shortlist + clusters; }
  [[nodiscard]] HSM_HOST_DEVICE int64_t keys() const { return clusters + 1; }
};

/// The tile sizes that a plan cuts by: those of the kernels that will run (see tiles.h).
struct HeadTiles {
  int root_tokens = 128;  ///< of an item of the root's forward pass
  int root_columns = 128;
  int leaf_tokens = 32;
  int leaf_columns = 128;
  int x_rows = 64;  ///< of an item of the backward passes: tokens for dH, rows for dW
  int y_rows = 64;
  int slice = 512;  ///< columns of D of a backward item
};

/// How a pass is cut into items of work, blocks and splits, and what memory it takes. A pure function of
/// sizes and tiles: the same on every GPU, so that sums are added in the same order everywhere.
struct HeadPlan {
  HeadSizes sizes;
  HeadTiles tiles;

  int64_t pieces = 0;  ///< of the tokens, for the counting sort
  int64_t tokens_a_piece = 0;
  int64_t root_token_tiles = 0;
  int64_t root_splits = 0;      ///< S: pieces of the root's columns in the forward pass
  int64_t columns_a_split = 0;  ///< a multiple of root_columns
  int64_t leaf_chunk = 0;       ///< rows of a cluster that one forward item walks; a multiple of leaf_columns
  int64_t leaf_chunks = 0;      ///< most chunks of a cluster
  int64_t rows_a_bin = 0;       ///< leaf rows after which dH's tiles of tokens are cut anew
  int64_t most_hidden_tiles = 0;
  int64_t slices = 0;          ///< of D, in the backward passes
  int64_t root_row_tiles = 0;  ///< of dU
  int64_t weight_splits = 0;   ///< of the tokens, in dU
  int64_t tokens_a_split = 0;
  int64_t most_weight_items = 0;  ///< of dW, without slices

  /// Elements of the lists: counts [pieces][C + 1], and five prefixes of C + 2 entries.
  [[nodiscard]] int64_t counts() const { return pieces * sizes.keys(); }
  [[nodiscard]] int64_t prefix() const { return sizes.clusters + 2; }
  /// Workspace, in elements of Sum: the counts, then partial log-sums of the forward pass, then partial dU
  /// and da, each when those before are done with.
  [[nodiscard]] int64_t workspace() const;
  /// Rows of the compact gradient of the word matrix, at most: shortlist and hit clusters.
  [[nodiscard]] int64_t most_gradient_rows() const { return sizes.shortlist + sizes.most_hit_rows; }
  /// Device bytes beyond inputs, weights and gradients, with Sum of `sum_bytes`.
  [[nodiscard]] int64_t extra_bytes(int64_t sum_bytes) const;
};

HeadPlan plan_head(const HeadSizes& sizes, const HeadTiles& tiles);

/// Cuts the root's columns as does not depend on the number of tokens, so that a row's scores don't either:
/// for decoding.
void cut_root_for_search(HeadPlan& plan);

}  // namespace hsm::kernels::device
