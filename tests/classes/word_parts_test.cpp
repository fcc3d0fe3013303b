#include "classes/word_parts.h"

#include <gtest/gtest.h>

#include <set>

#include "classes/vocabularies.h"

namespace hsm {
namespace {

TEST(WordParts, FrequentWordsMoveAndTheShortlistIsFixed) {
  const Vocabulary vocabulary = zipf_vocabulary(500);
  const RankedWords words(vocabulary, BinWeight::square_root);
  const int64_t first = words.first_binned(40);
  const WordParts parts = part_words(vocabulary, words, first, 7, 100);
  EXPECT_EQ(parts.moving, 100);
  EXPECT_EQ(parts.groups(), 7 + parts.fixed);
  std::set<int32_t> fixed;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const int32_t item = parts.item_of[static_cast<size_t>(id)];
    const bool shortlisted = id < 40 || id == vocabulary.unknown() || id == vocabulary.end_of_sentence();
    if (shortlisted) {
      EXPECT_GE(item, parts.moving);
      EXPECT_TRUE(fixed.insert(item).second) << "two words of the shortlist in one group";
    }
  }
  for (size_t item = 0; item < parts.moving_ids.size(); ++item) {
    EXPECT_EQ(parts.item_of[static_cast<size_t>(parts.moving_ids[item])], static_cast<int32_t>(item));
  }
  // All others share the last group.
  EXPECT_EQ(parts.rare_ids.size() + 100 + fixed.size(), static_cast<size_t>(vocabulary.size()));
  for (const int32_t id : parts.rare_ids) {
    EXPECT_EQ(parts.item_of[static_cast<size_t>(id)], parts.items() - 1);
    EXPECT_EQ(fixed.count(parts.item_of[static_cast<size_t>(id)]), 0U);
  }
}

TEST(WordParts, WordsBeyondAWideShortlistShareAGroup) {
  const Vocabulary vocabulary = zipf_vocabulary(9'000);
  const RankedWords words(vocabulary, BinWeight::square_root);
  const WordParts parts = part_words(vocabulary, words, words.first_binned(6'000), 10, 1 << 17);
  EXPECT_EQ(parts.fixed, 4'097);
  EXPECT_TRUE(parts.rare_ids.empty());
  std::set<int32_t> groups;
  for (int32_t id = 0; id < 6'000; ++id) {
    const int32_t item = parts.item_of[static_cast<size_t>(id)];
    groups.insert(item);
    EXPECT_EQ(item == parts.items() - 1, id >= 4'096) << id;
  }
  EXPECT_EQ(groups.size(), 4'097U);
}

TEST(WordParts, AsManyWordsMoveAsThereAreClusters) {
  const Vocabulary vocabulary = zipf_vocabulary(100);
  const RankedWords words(vocabulary, BinWeight::square_root);
  EXPECT_EQ(part_words(vocabulary, words, 0, 30, 5).moving, 30);
}

}  // namespace
}  // namespace hsm
