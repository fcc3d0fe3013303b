#include "train/touched_rows.h"

#include <gtest/gtest.h>

#include <vector>

namespace hsm {
namespace {

// Words 0 and 3 at the root; clusters {1, 4}, {2}, {5, 6}. Rows: 0 3 | 1 4 | 2 | 5 6.
HeadLayout layout() {
  WordClasses classes;
  classes.cluster_of = {kShortlist, 0, 1, kShortlist, 0, 2, 2};
  classes.clusters = 3;
  return make_layout(classes);
}

Batch batch(std::vector<int32_t> inputs, std::vector<int32_t> targets) {
  Batch result;
  result.steps = static_cast<int64_t>(inputs.size());
  result.streams = 1;
  result.inputs = std::move(inputs);
  result.targets = std::move(targets);
  return result;
}

TEST(TouchedRows, HeadReadsShortlistAndClustersOfTargets) {
  const TouchedRows rows = touched_rows(batch({5, 2, 5}, {4, kNoTarget, 1}), layout(), false);
  EXPECT_EQ(rows.head, (std::vector<int64_t>{0, 1, 2, 3}));
  EXPECT_EQ(rows.embedding, (std::vector<int64_t>{4, 5}));
}

TEST(TouchedRows, OnlyShortlistWhenTargetsAreAtTheRoot) {
  const TouchedRows rows = touched_rows(batch({3}, {0}), layout(), false);
  EXPECT_EQ(rows.head, (std::vector<int64_t>{0, 1}));
  EXPECT_EQ(rows.embedding, (std::vector<int64_t>{1}));
}

TEST(TouchedRows, TiedMatricesTakeTheUnion) {
  const TouchedRows rows = touched_rows(batch({6, 0, 4}, {2, 3, 2}), layout(), true);
  EXPECT_EQ(rows.head, (std::vector<int64_t>{0, 1, 3, 4, 6}));
  EXPECT_EQ(rows.embedding, rows.head);
}

}  // namespace
}  // namespace hsm
