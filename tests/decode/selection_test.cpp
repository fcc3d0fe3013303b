#include "decode/selection.h"

#include <gtest/gtest.h>

#include <vector>

namespace hsm {
namespace {

TEST(Selection, AnEndSymbolTakesNoLivePlace) {
  const std::vector<Candidate> words{{-1, 5, 0}, {-3, 6, 0}, {-4, 7, 1}};
  const std::vector<Candidate> ends{{-2, 0, 0}};
  const Selection chosen = select(words, ends, 2);
  ASSERT_EQ(chosen.live.size(), 2);
  EXPECT_EQ(chosen.live[1].word, 6);
  ASSERT_EQ(chosen.finished.size(), 1);
}

TEST(Selection, AnEndSymbolBelowTheBestFinishesNothing) {
  const std::vector<Candidate> words{{-1, 5, 0}, {-3, 6, 0}};
  const std::vector<Candidate> ends{{-2, 0, 0}, {-5, 0, 1}};
  EXPECT_EQ(select(words, ends, 1).finished.size(), 0);
  EXPECT_EQ(select(words, ends, 2).finished.size(), 1);
  EXPECT_EQ(select(words, ends, 3).finished.size(), 1);
  EXPECT_EQ(select(words, ends, 4).finished.size(), 2);
}

TEST(Selection, TiesGoBySmallerWordThenEarlierParent) {
  const std::vector<Candidate> words{{-1, 1, 0}, {-1, 9, 0}};
  const std::vector<Candidate> ends{{-1, 4, 1}};
  EXPECT_EQ(select(words, ends, 1).finished.size(), 0);  // word 1 comes first
  EXPECT_EQ(select(words, ends, 2).finished.size(), 1);  // before word 9
  EXPECT_TRUE(better({-1, 4, 0}, {-1, 4, 1}));
  EXPECT_FALSE(better({-1, 4, 1}, {-1, 4, 1}));
}

TEST(Selection, NothingToChooseFromGivesNothing) {
  const Selection chosen = select({}, {}, 3);
  EXPECT_TRUE(chosen.live.empty());
  EXPECT_TRUE(chosen.finished.empty());
}

}  // namespace
}  // namespace hsm
