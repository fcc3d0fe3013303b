#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "base/error.h"
#include "base/random.h"
#include "classes/word_classes.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

TEST(HeadLayout, PutsTheShortlistFirstAndThenClusterByCluster) {
  const HeadLayout layout = make_layout(WordClasses{{1, kShortlist, 0, 1, 0, kShortlist, 1}, 2});
  EXPECT_THAT(layout.word_of_row, ElementsAre(1, 5, 2, 4, 0, 3, 6));
  EXPECT_THAT(layout.row_of_word, ElementsAre(4, 0, 2, 5, 3, 1, 6));
  EXPECT_THAT(layout.cluster_offsets, ElementsAre(2, 4, 7));
  EXPECT_THAT(layout.cluster_of_row, ElementsAre(kShortlist, kShortlist, 0, 0, 1, 1, 1));
  EXPECT_EQ(layout.words(), 7);
  EXPECT_EQ(layout.shortlist(), 2);
  EXPECT_EQ(layout.clusters(), 2);
}

TEST(HeadLayout, HoldsForAnyClasses) {
  const CounterRandom random(7, Purpose::shuffle);
  for (uint64_t trial = 0; trial < 40; ++trial) {
    const auto clusters = static_cast<int32_t>(random.below(9, trial, 0));
    const auto words = static_cast<size_t>(clusters) + random.below(60, trial, 1) + 1;
    WordClasses classes;
    classes.clusters = clusters;
    for (size_t word = 0; word < words; ++word) {
      // One word for each cluster, then at random.
      const auto drawn =
          static_cast<int32_t>(random.below(static_cast<uint64_t>(clusters) + 1, trial, 2 + word)) - 1;
      classes.cluster_of.push_back(word < static_cast<size_t>(clusters) ? static_cast<int32_t>(word) : drawn);
    }
    const HeadLayout layout = make_layout(classes);
    ASSERT_EQ(layout.words(), static_cast<int64_t>(words));
    ASSERT_EQ(layout.clusters(), clusters);
    for (size_t row = 0; row < words; ++row) {
      const auto word = static_cast<size_t>(layout.word_of_row[row]);
      ASSERT_EQ(layout.row_of_word[word], static_cast<int64_t>(row));
      ASSERT_EQ(layout.cluster_of_row[row], classes.cluster_of[word]);
      if (row > 0) {
        const auto before = std::make_pair(layout.cluster_of_row[row - 1], layout.word_of_row[row - 1]);
        ASSERT_LT(before, std::make_pair(layout.cluster_of_row[row], layout.word_of_row[row]));
      }
    }
    for (int64_t cluster = 0; cluster < clusters; ++cluster) {
      const auto c = static_cast<size_t>(cluster);
      ASSERT_LT(layout.cluster_offsets[c], layout.cluster_offsets[c + 1]);
      ASSERT_EQ(layout.cluster_of_row[static_cast<size_t>(layout.cluster_offsets[c])], cluster);
    }
    const HeadLayout again = make_layout(layout.row_of_word, layout.cluster_offsets);
    EXPECT_EQ(again.word_of_row, layout.word_of_row);
    EXPECT_EQ(again.cluster_of_row, layout.cluster_of_row);
    EXPECT_EQ(again.hash(), layout.hash());
    EXPECT_EQ(classes_of(layout).cluster_of, classes.cluster_of);
    EXPECT_EQ(classes_of(layout).clusters, classes.clusters);
  }
}

TEST(HeadLayout, TheHashTellsLayoutsApart) {
  const std::string hash = make_layout(WordClasses{{kShortlist, 0, 1, 1}, 2}).hash();
  EXPECT_EQ(hash.size(), 16U);
  EXPECT_NE(make_layout(WordClasses{{kShortlist, 0, 0, 1}, 2}).hash(), hash);
  EXPECT_NE(make_layout(WordClasses{{kShortlist, 1, 1, 0}, 2}).hash(), hash);
  EXPECT_NE(make_layout(WordClasses{{kShortlist, 0, 0, 0}, 1}).hash(), hash);
}

TEST(HeadLayout, ClassesThatAreNoneAreRefused) {
  const auto refusal = [](std::vector<int32_t> cluster_of, int32_t clusters) {
    return message_of<DataError>([&] { make_layout(WordClasses{std::move(cluster_of), clusters}); });
  };
  EXPECT_THAT(refusal({0, 2}, 2), HasSubstr("word 1 has class 2, expected one below 2"));
  EXPECT_THAT(refusal({0, -2}, 1), HasSubstr("word 1 has class -2"));
  EXPECT_THAT(refusal({0, 2, kShortlist}, 3), HasSubstr("class 1 has no words"));
}

TEST(HeadLayout, TablesThatDescribeNoneAreRefused) {
  using Table = std::vector<int64_t>;
  const auto refusal = [](const Table& rows, const Table& offsets) {
    return message_of<DataError>([&] { make_layout(rows, offsets); });
  };
  EXPECT_THAT(refusal({0, 1, 2}, {}), HasSubstr("head.cluster_offsets: empty"));
  EXPECT_THAT(refusal({0, 1, 2}, {1, 2}), HasSubstr("ends with row 2, expected the number of words, 3"));
  EXPECT_THAT(refusal({0, 1, 2}, {1, 4}), HasSubstr("ends with row 4"));
  EXPECT_THAT(refusal({0, 1, 2}, {-1, 3}), HasSubstr("starts with row -1"));
  EXPECT_THAT(refusal({0, 1, 2}, {1, 1, 3}), HasSubstr("cluster 0 has rows from 1 to 1"));
  EXPECT_THAT(refusal({0, 1, 2}, {2, 1, 3}), HasSubstr("cluster 0 has rows from 2 to 1"));
  EXPECT_THAT(refusal({0, 1, 3}, {1, 3}),
              HasSubstr("head.row_of_word: word 2 has row 3, expected one from 0 to 2"));
  EXPECT_THAT(refusal({0, -1, 2}, {1, 3}), HasSubstr("word 1 has row -1"));
  EXPECT_THAT(refusal({0, 1, 1}, {1, 3}), HasSubstr("word 2 has row 1, which another word has, too"));
  EXPECT_THAT(refusal({0, 2, 1}, {1, 3}),
              HasSubstr("word 1 has row 2, after a word of its class with a larger id"));
  EXPECT_NO_THROW(make_layout(Table{0, 2, 1}, Table{1, 2, 3}));
}

TEST(DropEmptyClusters, KeepsTheOrderOfTheOthers) {
  WordClasses classes{{4, kShortlist, 1, 4, 2}, 6};
  drop_empty_clusters(classes);
  EXPECT_EQ(classes.clusters, 3);
  EXPECT_THAT(classes.cluster_of, ElementsAre(2, kShortlist, 0, 2, 1));
}

}  // namespace
}  // namespace hsm
