#include "gpu/engine/window_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace hsm {
namespace {

using testing::ElementsAre;

// Rows: 0 and 1 at the root, then clusters of 1, 3 and 2 words; ids are rows.
HeadLayout layout() {
  WordClasses classes;
  classes.clusters = 3;
  classes.cluster_of = {kShortlist, kShortlist, 0, 1, 1, 1, 2, 2};
  return make_layout(classes);
}

// Two times of three streams.
Batch batch() {
  return {2, 3, {3, 0, 3, 7, 3, 0}, {6, 1, kNoTarget, 2, 7, 0}, 5, true};
}

std::vector<int32_t> part(const WindowRows& rows, NumberRange range) {
  const auto first = rows.numbers.begin() + range.first;
  return {first, first + range.count};
}

TEST(WindowRows, ListsWhatAWindowReadsAndWhatItsTargetsHit) {
  const HeadLayout head = layout();
  const WindowRows rows = WindowLister(head, {}, false, false).list(batch());
  EXPECT_TRUE(rows.one_pass());
  EXPECT_THAT(part(rows, rows.embedding), ElementsAre(0, 3, 7));
  // The shortlist and the last cluster; nothing is learnt about a cluster of one word.
  EXPECT_THAT(part(rows, rows.head), ElementsAre(0, 1, 6, 7));
  const WindowPiece& piece = rows.pieces[0];
  EXPECT_THAT(part(rows, piece.inputs), ElementsAre(3, 0, 3, 7, 3, 0));
  EXPECT_THAT(part(rows, piece.targets), ElementsAre(6, 1, -1, 2, 7, 0));
  EXPECT_THAT(part(rows, piece.order), ElementsAre(1, 5, 0, 2, 4, 3));
  EXPECT_THAT(part(rows, piece.starts), ElementsAre(0, 2, 5, 6));
  EXPECT_THAT(part(rows, piece.places), ElementsAre(0, 1, 2));
  EXPECT_THAT(part(rows, piece.chunks[0].places), ElementsAre(0, 1, 2, 3));
  EXPECT_EQ(piece.chunks[0].most_hit_rows, 6);
  EXPECT_EQ(rows.embedding_places.count, 0);
}

TEST(WindowRows, TiedMatricesShareTheirRows) {
  const HeadLayout head = layout();
  const WindowRows rows = WindowLister(head, {}, true, false).list(batch());
  EXPECT_THAT(part(rows, rows.head), ElementsAre(0, 1, 3, 6, 7));
  EXPECT_THAT(part(rows, rows.pieces[0].places), ElementsAre(0, 2, 4));
  EXPECT_THAT(part(rows, rows.pieces[0].chunks[0].places), ElementsAre(0, 1, 3, 4));
}

TEST(WindowRows, DenseOnesSayForEachRowWhereItsGradientIs) {
  const HeadLayout head = layout();
  const WindowRows rows = WindowLister(head, {}, false, true).list(batch());
  EXPECT_THAT(part(rows, rows.embedding_places), ElementsAre(0, -1, -1, 1, -1, -1, -1, 2));
  EXPECT_THAT(part(rows, rows.head_places), ElementsAre(0, 1, -1, -1, -1, -1, 2, 3));
}

TEST(WindowRows, PiecesFindTheirRowsAmongThoseOfTheWindow) {
  const HeadLayout head = layout();
  const WindowRows rows = WindowLister(head, {2, 3}, false, false).list(batch());
  EXPECT_FALSE(rows.one_pass());
  ASSERT_EQ(rows.pieces.size(), 2U);
  const WindowPiece& second = rows.pieces[1];  // the third stream
  EXPECT_EQ(second.group.first, 2);
  EXPECT_THAT(part(rows, second.inputs), ElementsAre(3, 0));
  EXPECT_THAT(part(rows, second.places), ElementsAre(0, 1));
  const WindowPiece& first = rows.pieces[0];
  EXPECT_THAT(part(rows, first.targets), ElementsAre(6, 1, 2, 7));
  ASSERT_EQ(first.chunks.size(), 2U);
  EXPECT_EQ(first.chunks[1].first, 3);
  EXPECT_EQ(first.chunks[1].tokens, 1);
  EXPECT_EQ(first.chunks[1].most_hit_rows, 3);  // one token hits one cluster
  EXPECT_THAT(part(rows, first.chunks[1].places), ElementsAre(0, 1, 2, 3));
  EXPECT_THAT(part(rows, second.chunks[0].places), ElementsAre(0, 1));
}

}  // namespace
}  // namespace hsm
