#include "kernels/device/head_plan.h"

#include <gtest/gtest.h>

#include <algorithm>

#include "kernels/device/head_memory.h"
#include "kernels/device/head_shapes.h"

namespace hsm::kernels::device {
namespace {

using Shapes = HeadShapes<Bf16, HeadVariant::resident_512>;

HeadSizes uniform_sizes(int64_t tokens, int64_t words, int64_t shortlist, int64_t clusters, int64_t dim) {
  HeadSizes sizes{tokens, words, shortlist, clusters, dim, 0, 0};
  if (clusters > 0) {
    sizes.largest_cluster = divide_up(words - shortlist, clusters);
    sizes.most_hit_rows = std::min(words - shortlist, std::min(tokens, clusters) * sizes.largest_cluster);
  }
  return sizes;
}

// Beyond inputs, weights and gradients: 32 bytes a token, 20 a key, and a workspace of 8 R D floats or 1 MB.
int64_t limit(const HeadSizes& sizes) {
  return 32 * sizes.tokens + 20 * (sizes.clusters + 2) +
         4 * std::max<int64_t>(8 * sizes.root() * sizes.dim, int64_t{1} << 18);
}

TEST(HeadPlan, KeepsToItsMemoryAtTheHeadlineSize) {
  const HeadSizes sizes = uniform_sizes(12800, 51200, 1000, 512, 512);
  const HeadPlan plan = plan_head(sizes, tiles_of<Shapes::Root, Shapes::Leaf, Shapes::Backward>());
  EXPECT_EQ(plan.extra_bytes(4), 15881800);
  EXPECT_LE(plan.extra_bytes(4), limit(sizes));
  // The tensor of the padded gather formulation, for scale: N · D · largest cluster values.
  EXPECT_GT(12800LL * 512 * 100 * 4, 165 * plan.extra_bytes(4));
}

// What is really cut out of the scratch: the same, with the list of the compact gradient's rows, and
// alignment.
TEST(HeadPlan, SaysWhatThePassAllocates) {
  const HeadSizes sizes = uniform_sizes(12800, 51200, 1000, 512, 512);
  const HeadPlan plan = plan_head(sizes, tiles_of<Shapes::Root, Shapes::Leaf, Shapes::Backward>());
  const int64_t allocated = head_memory<Bf16>(plan, nullptr).bytes;
  const int64_t rows = 4 * plan.most_gradient_rows() + 8;
  EXPECT_GE(allocated, plan.extra_bytes(4) + rows);
  EXPECT_LE(allocated, plan.extra_bytes(4) + rows + 15 * 256);
  EXPECT_LE(allocated, limit(sizes));
}

TEST(HeadPlan, KeepsToItsMemoryAtManySizes) {
  for (const int64_t tokens : {1, 31, 700, 12800, 65536}) {
    for (const int64_t words : {2, 1000, 51200, 1000000}) {
      for (const int64_t clusters : {0, 1, 100, 2000}) {
        for (const int64_t dim : {1, 64, 200, 512, 1024, 4096}) {
          const int64_t shortlist = std::min<int64_t>(words, clusters == 0 ? words : 200);
          if (clusters > words - shortlist) continue;
          const HeadSizes sizes = uniform_sizes(tokens, words, shortlist, clusters, dim);
          const HeadPlan plan = plan_head(sizes, tiles_of<Shapes::Root, Shapes::Leaf, Shapes::Backward>());
          if (sizes.root() * (dim + 1) > std::max<int64_t>(8 * sizes.root() * dim, 1 << 18)) continue;
          EXPECT_LE(plan.extra_bytes(4), limit(sizes))
              << tokens << " tokens, " << words << " words, " << clusters << " clusters, D " << dim;
        }
      }
    }
  }
}

TEST(HeadPlan, CoversEveryTokenAndColumn) {
  for (const int64_t tokens : {1, 127, 128, 129, 5000, 12800}) {
    for (const int64_t root : {1, 127, 129, 1512, 10000}) {
      const HeadSizes sizes = uniform_sizes(tokens, root, root, 0, 512);
      const HeadPlan plan = plan_head(sizes, tiles_of<Shapes::Root, Shapes::Leaf, Shapes::Backward>());
      EXPECT_GE(plan.pieces * plan.tokens_a_piece, tokens);
      EXPECT_GE(plan.root_splits * plan.columns_a_split, root);
      EXPECT_LT((plan.root_splits - 1) * plan.columns_a_split, root);
      EXPECT_GE(plan.weight_splits * plan.tokens_a_split, tokens);
      EXPECT_LT((plan.weight_splits - 1) * plan.tokens_a_split, tokens);
      EXPECT_EQ(plan.columns_a_split % plan.tiles.root_columns, 0);
      EXPECT_EQ(plan.leaf_chunk % plan.tiles.leaf_columns, 0);
    }
  }
}

}  // namespace
}  // namespace hsm::kernels::device
