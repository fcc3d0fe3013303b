#include "text/vocabulary.h"

#include <utility>

#include "base/random.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

std::vector<std::string> words_of(const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (int32_t id = 0; id < vocabulary.size(); ++id) words.push_back(vocabulary.word(id));
  return words;
}

TEST(VocabularyIds, AreRanksByCountWithTiesBySpelling) {
  const Vocabulary vocabulary = Vocabulary::from_counts(
      {{"pear", 3}, {"fig", 3}, {"</s>", 2}, {"apple", 9}, {"\u00E4pple", 3}, {"<unk>", 3}, {"Fig", 3}});
  EXPECT_THAT(words_of(vocabulary),
              ElementsAre("apple", "<unk>", "Fig", "fig", "pear", "\u00E4pple", "</s>"));
  EXPECT_EQ(vocabulary.unknown(), 1);
  EXPECT_EQ(vocabulary.end_of_sentence(), 6);
  EXPECT_EQ(vocabulary.count(0), 9);
  EXPECT_EQ(vocabulary.total_count(), 26);
  EXPECT_EQ(vocabulary.find("fig"), 3);
  EXPECT_EQ(vocabulary.find("plum"), std::nullopt);
  EXPECT_EQ(vocabulary.find(""), std::nullopt);
  EXPECT_EQ(vocabulary.id_or_unknown("plum"), 1);
}

TEST(VocabularyIds, ReservedSymbolsAreAddedWhenMissing) {
  const Vocabulary vocabulary = Vocabulary::from_counts({{"word", 0}});
  EXPECT_THAT(words_of(vocabulary), ElementsAre("</s>", "<unk>", "word"));
  EXPECT_EQ(vocabulary.count(vocabulary.unknown()), 0);
  EXPECT_EQ(Vocabulary::from_counts({}).size(), 2);
}

TEST(VocabularyIds, WhatCannotBeAWordIsRefused) {
  using Entries = std::vector<Vocabulary::Entry>;
  const auto refusal = [](Entries entries) {
    return message_of<DataError>([&] { Vocabulary::from_counts(std::move(entries)); });
  };
  EXPECT_THAT(refusal({{"a", 1}, {"a", 2}}), HasSubstr("\"a\" is there twice"));
  EXPECT_THAT(refusal({{"", 1}}), HasSubstr("empty word"));
  EXPECT_THAT(refusal({{"a b", 1}}), HasSubstr("white space"));
  EXPECT_THAT(refusal({{"a\xFF", 1}}), HasSubstr("UTF-8"));
  EXPECT_THAT(refusal({{"<s>", 1}}), HasSubstr("\"<s>\" is reserved"));
  EXPECT_THAT(refusal({{"a", -1}}), HasSubstr("negative count"));
}

TEST(VocabularyIds, LookUpsSurviveAMove) {
  Vocabulary first = Vocabulary::from_counts({{"a", 5}, {"a-much-longer-word-than-fits-in-place", 4}});
  const std::string hash = first.hash();
  Vocabulary second = std::move(first);
  Vocabulary third = Vocabulary::from_counts({{"other", 1}});
  third = std::move(second);
  EXPECT_EQ(third.find("a"), 0);
  EXPECT_EQ(third.find("a-much-longer-word-than-fits-in-place"), 1);
  EXPECT_EQ(third.find("other"), std::nullopt);
  EXPECT_EQ(third.hash(), hash);
}

TEST(VocabularyIds, TheHashTellsWordsAndTheirOrderApart) {
  const auto hash = [](std::vector<Vocabulary::Entry> entries) {
    return Vocabulary::from_counts(std::move(entries)).hash();
  };
  EXPECT_EQ(hash({{"a", 5}, {"b", 3}}), hash({{"b", 2}, {"a", 7}}));
  EXPECT_NE(hash({{"a", 5}, {"b", 3}}), hash({{"b", 5}, {"a", 3}}));
  EXPECT_NE(hash({{"ab", 5}, {"c", 3}}), hash({{"a", 5}, {"bc", 3}}));
  EXPECT_EQ(hash({}).size(), 16U);
}

using VocabularyFile = TextTest;

TEST_F(VocabularyFile, ReadsBackWhatItWrote) {
  const CounterRandom random(3, Purpose::shuffle);
  std::vector<Vocabulary::Entry> entries;
  for (uint64_t i = 0; i < 5000; ++i) {
    entries.push_back({"w" + std::to_string(i * 31) + (i % 3 == 0 ? "\u00FC" : ""),
                       static_cast<int64_t>(random.below(40, 0, i))});
  }
  const Vocabulary written = Vocabulary::from_counts(entries);
  written.save(path("vocabulary.txt"));
  const Vocabulary read = Vocabulary::load(path("vocabulary.txt"));
  EXPECT_EQ(read.hash(), written.hash());
  ASSERT_EQ(read.size(), written.size());
  for (int32_t id = 0; id < read.size(); ++id) {
    ASSERT_EQ(read.word(id), written.word(id));
    ASSERT_EQ(read.count(id), written.count(id));
    ASSERT_EQ(read.find(written.word(id)), id);
  }
}

TEST_F(VocabularyFile, HoldsAWordATabAndItsCountALineInIdOrder) {
  Vocabulary::from_counts({{"b", 1}, {"a", 1}, {"</s>", 7}}).save(path("vocabulary.txt"));
  EXPECT_EQ(read_file(path("vocabulary.txt")), "</s>\t7\na\t1\nb\t1\n<unk>\t0\n");
}

TEST_F(VocabularyFile, MalformedFilesAreRefusedWithTheirLine) {
  const std::string good = "a\t9\n</s>\t5\n<unk>\t5\n";
  struct Case {
    std::string content;
    std::string message;
  };
  const std::vector<Case> cases = {
      {good + "b\n", ":4: \"b\" given, expected a word, a tab and its count"},
      {good + "\n", ":4: \"\" given, expected"},
      {good + "\t3\n", ":4: an empty word"},
      {good + "b c\t3\n", ":4: \"b c\" holds white space"},
      {good + "b\xC0\t3\n", "is not well-formed UTF-8"},
      {good + std::string("b\0\t3\n", 5), "holds white space"},
      {good + "b\t\n", ":4: count \"\" given for \"b\""},
      {good + "b\t3.5\n", ":4: count \"3.5\""},
      {good + "b\t-1\n", ":4: count \"-1\""},
      {good + "b\t3\t4\n", ":4: count \"3\\x094\""},
      {good + "b\t99999999999999999999\n", ":4: count"},
      {good + "<s>\t3\n", ":4: \"<s>\" is reserved"},
      {good + "a\t3\n", ":4: \"a\" is there twice"},
      {good + "b\t6\n", ":4: \"b\" is out of order"},
      {good + "d\t3\nc\t3\n", ":5: \"c\" is out of order"},
      {"a\t9\n<unk>\t5\n", ": has no \"</s>\""},
      {"a\t9\n</s>\t5\n", ": has no \"<unk>\""},
      {"", ": has no \"</s>\""},
  };
  for (const Case& c : cases) {
    const std::string file = write("vocabulary.txt", c.content);
    const std::string message = message_of<DataError>([&] { Vocabulary::load(file); });
    EXPECT_THAT(message, StartsWith(file));
    EXPECT_THAT(message, HasSubstr(c.message));
  }
  EXPECT_THROW(Vocabulary::load(path("missing")), DataError);
}

TEST_F(VocabularyFile, AListOfWordsNeedsNoCountsAndNoOrder) {
  EXPECT_THAT(load_word_list(write("list", "zebra\n<s>\nApple\t17\napple\n</s>"), {}),
              ElementsAre("zebra", "Apple", "apple", "</s>"));
  EXPECT_THAT(load_word_list(path("list"), {true}), ElementsAre("zebra", "apple", "</s>"));
}

TEST_F(VocabularyFile, MalformedListsAreRefusedWithTheirLine) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a\n\nb\n", ":2: an empty word"},
      {"a\nb c\n", ":2: \"b c\" holds white space"},
      {"a\nb\na\n", ":3: \"a\" is listed twice"},
      {"a\xFF\n", ":1: \"a\\xFF\" is not well-formed UTF-8"},
      {"", ": holds no word"},
      {"<s>\n", ": holds no word"},
  };
  for (const auto& [content, expected] : cases) {
    const std::string file = write("list", content);
    EXPECT_THAT(message_of<DataError>([&] { load_word_list(file, {}); }), StartsWith(file + expected));
  }
}

}  // namespace
}  // namespace hsm
