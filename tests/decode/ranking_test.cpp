#include "decode/ranking.h"

#include <gtest/gtest.h>

#include <cmath>

namespace hsm {
namespace {

TEST(LengthPenalty, DividesByFivePlusLengthOverSixToTheAlpha) {
  EXPECT_DOUBLE_EQ(LengthPenalty(0).score(-7, 13), -7);
  EXPECT_DOUBLE_EQ(LengthPenalty(1).score(-6, 1), -6);
  EXPECT_DOUBLE_EQ(LengthPenalty(1).score(-6, 7), -3);
  EXPECT_DOUBLE_EQ(LengthPenalty(2).score(-8, 7), -2);
  EXPECT_DOUBLE_EQ(LengthPenalty(-1).score(-3, 7), -6);
}

TEST(LengthPenalty, BoundsEveryContinuationForBothSigns) {
  for (const double alpha : {-2.0, -0.3, 0.0, 0.6, 3.0}) {
    const LengthPenalty penalty(alpha);
    for (int64_t length = 4; length <= 30; ++length) {
      for (const double loss : {0.0, 0.1, 5.0}) {
        EXPECT_LE(penalty.score(-3 - loss, length), penalty.bound(-3, 4, 30)) << alpha << ' ' << length;
      }
    }
  }
}

TEST(FinishedList, KeepsTheBestAndTheEarlierOfEqualScores) {
  Arena arena(4096);
  FinishedList list(arena, 3);
  EXPECT_FALSE(list.closed_to(-100));
  for (int32_t i = 0; i < 6; ++i) list.add({i == 4 ? -1.0 : -2.0, 0, i, 1, true});
  ASSERT_EQ(list.entries().size(), 3);
  EXPECT_EQ(list.entries()[0].node, 4);
  EXPECT_EQ(list.entries()[1].node, 0);
  EXPECT_EQ(list.entries()[2].node, 1);
  EXPECT_TRUE(list.closed_to(-2));
  EXPECT_FALSE(list.closed_to(-1.9));
}

}  // namespace
}  // namespace hsm
