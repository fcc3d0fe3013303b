#include "kernels/device/head_plan.h"

#include <algorithm>

namespace hsm::kernels::device {
namespace {

// A GPU of today has about this many multiprocessors; a constant, so that plans do not depend on the device.
constexpr int64_t kMultiprocessors = 132;
constexpr int64_t kMostSplits = 8;
constexpr int64_t kLeastLeafChunk = 8192;
constexpr int64_t kMostLeafChunks = 8;
constexpr int64_t kLeastWorkspace = int64_t{1} << 18;  // elements: 1 MB of floats
constexpr int64_t kMostCounts = kLeastWorkspace;
constexpr int64_t kTokensAPiece = 256;

int64_t up(int64_t a, int64_t b) {
  return divide_up(a, b);
}

// The number of splits that wastes least of the last wave of blocks.
int64_t choose_splits(int64_t tiles, int64_t most) {
  int64_t best = 1;
  for (int64_t s = 2; s <= most; ++s) {
    // waves(s) / s, compared without fractions
    if (up(tiles * s, kMultiprocessors) * best < up(tiles * best, kMultiprocessors) * s) best = s;
  }
  return best;
}

}  // namespace

HeadPlan plan_head(const HeadSizes& sizes, const HeadTiles& tiles) {
  HeadPlan plan;
  plan.sizes = sizes;
  plan.tiles = tiles;
  const int64_t tokens = std::max<int64_t>(sizes.tokens, 1);
  const int64_t root = std::max<int64_t>(sizes.root(), 1);

  // Workspace that the splits may take. A part of the forward pass is two elements a token.
  const int64_t workspace = std::max(kMostSplits * sizes.root() * sizes.dim, kLeastWorkspace);
  const int64_t parts = std::max<int64_t>(2, workspace / (2 * tokens));

  plan.pieces = std::min(up(tokens, kTokensAPiece), std::max<int64_t>(1, kMostCounts / sizes.keys()));
  plan.tokens_a_piece = up(up(tokens, plan.pieces), 32) * 32;

  const int64_t chunks = std::min(kMostLeafChunks, parts / 2);
  const int64_t chunk = std::max(kLeastLeafChunk, up(sizes.largest_cluster, chunks));
  plan.leaf_chunk = up(chunk, tiles.leaf_columns) * tiles.leaf_columns;
  plan.leaf_chunks = std::max<int64_t>(1, up(sizes.largest_cluster, plan.leaf_chunk));

  plan.root_token_tiles = up(tokens, tiles.root_tokens);
  const int64_t column_tiles = up(root, tiles.root_columns);
  const int64_t most_splits = std::min({kMostSplits, column_tiles, parts - plan.leaf_chunks});
  const int64_t asked = choose_splits(plan.root_token_tiles, most_splits);
  plan.columns_a_split = up(column_tiles, asked) * tiles.root_columns;
  plan.root_splits = up(root, plan.columns_a_split);

  plan.rows_a_bin = std::max<int64_t>(4096, 4 * root);
  plan.most_hidden_tiles = up(tokens, tiles.x_rows) + sizes.most_hit_rows / plan.rows_a_bin + 1;
  plan.slices = up(std::max<int64_t>(sizes.dim, 1), tiles.slice);

  plan.root_row_tiles = up(root, tiles.x_rows);
  const int64_t fitting = std::max<int64_t>(1, kMultiprocessors / (plan.root_row_tiles * plan.slices));
  const int64_t affordable = std::max<int64_t>(1, workspace / (root * (sizes.dim + 1)));
  const int64_t splits = std::min({kMostSplits, fitting, affordable, up(tokens, tiles.y_rows)});
  plan.tokens_a_split = up(up(tokens, tiles.y_rows), splits) * tiles.y_rows;
  plan.weight_splits = up(tokens, plan.tokens_a_split);
  plan.most_weight_items = sizes.most_hit_rows / tiles.x_rows + std::min(sizes.clusters, tokens);
  return plan;
}

void cut_root_for_search(HeadPlan& plan) {
  const int64_t root = std::max<int64_t>(plan.sizes.root(), 1);
  const int64_t column_tiles = up(root, plan.tiles.root_columns);
  plan.columns_a_split = up(column_tiles, kMostSplits) * plan.tiles.root_columns;
  plan.root_splits = up(root, plan.columns_a_split);
}

int64_t HeadPlan::workspace() const {
  const int64_t forward = 2 * sizes.tokens * (root_splits + leaf_chunks);
  const int64_t backward = weight_splits * sizes.root() * (sizes.dim + 1);
  return std::max({counts(), forward, backward});
}

int64_t HeadPlan::extra_bytes(int64_t sum_bytes) const {
  constexpr int64_t kInt = 4;
  const int64_t token = 2 * kInt + 5 * sum_bytes;  // order, key; two target logits, two log-sums, loss
  return sizes.tokens * token + 5 * prefix() * kInt + workspace() * sum_bytes;
}

}  // namespace hsm::kernels::device
