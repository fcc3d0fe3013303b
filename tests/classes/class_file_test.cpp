#include "classes/class_file.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "classes/frequency.h"
#include "classes/make_classes.h"
#include "classes/vocabularies.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::StartsWith;

class ClassFile : public TextTest {
 protected:
  // Ids: </s> 0, a 1, b 2, c 3, d 4, <unk> 5.
  const Vocabulary vocabulary_ =
      Vocabulary::from_counts({{"</s>", 9}, {"a", 8}, {"b", 7}, {"c", 6}, {"d", 5}, {"<unk>", 4}});
};

TEST_F(ClassFile, ReadsBackToTheSameLayout) {
  const Vocabulary vocabulary = zipf_vocabulary(2'000);
  // More than 10 classes, so that numbers must be ordered by value; classes not in order of rank.
  WordClasses classes = frequency_classes(vocabulary, BinWeight::count, 30, 23);
  for (int32_t& cluster : classes.cluster_of) {
    if (cluster != kShortlist) cluster = cluster * 7 % 23;
  }
  save_classes(path("classes.txt"), vocabulary, classes);
  const WordClasses read = load_classes(path("classes.txt"), vocabulary);
  EXPECT_EQ(read.clusters, 23);
  EXPECT_EQ(read.cluster_of, classes.cluster_of);
  EXPECT_EQ(make_layout(read).hash(), make_layout(classes).hash());
}

TEST_F(ClassFile, HoldsAWordATabAndItsClassALineInIdOrder) {
  save_classes(path("classes.txt"), vocabulary_, {{kShortlist, 1, 0, 0, 1, kShortlist}, 2});
  EXPECT_EQ(read_file(path("classes.txt")), "</s>\t-\na\t1\nb\t0\nc\t0\nd\t1\n<unk>\t-\n");
}

TEST_F(ClassFile, NamesAreFreeAndTheOrderOfLinesDoesNotMatter) {
  // Numbers by value, then names by spelling; 007 is a name. A byte order mark is no part of the first word.
  const WordClasses classes = load_classes(write("classes",
                                                 "\xEF\xBB\xBF"
                                                 "d  007\r\nc noun\n<s> 4\nb\t10\nzebra 3\na 9"),
                                           vocabulary_);
  EXPECT_EQ(classes.clusters, 4);
  EXPECT_THAT(classes.cluster_of, ElementsAre(kShortlist, 0, 1, 3, 2, kShortlist));
}

TEST_F(ClassFile, TakesThePathsOfABrownClustering) {
  const WordClasses classes =
      load_classes(write("paths", "0\tb\t7\n0\td\t5\n10\ta\t8\n110\tc\t6\n110\tzebra\t1\n"), vocabulary_);
  EXPECT_EQ(classes.clusters, 3);
  EXPECT_THAT(classes.cluster_of, ElementsAre(kShortlist, 1, 0, 2, 0, kShortlist));
  EXPECT_THAT(message_of<DataError>([&] { load_classes(write("paths", "0 b x\n"), vocabulary_); }),
              HasSubstr(":1: \"0 b x\" given, expected a word and its class"));
}

TEST_F(ClassFile, ReservedSymbolsAreOnTheShortlistWhateverItSays) {
  const WordClasses classes =
      load_classes(write("classes", "</s> 0\n<unk> 1\na -\nb 1\nc 2\nd 2\n"), vocabulary_);
  EXPECT_EQ(classes.clusters, 2) << "class 0 has no word left";
  EXPECT_THAT(classes.cluster_of, ElementsAre(kShortlist, kShortlist, 0, 1, 1, kShortlist));
}

TEST_F(ClassFile, MalformedFilesAreRefused) {
  const std::vector<std::pair<std::string, std::string>> cases = {
      {"a 1\nb\nc 1\nd 1\n", ":2: \"b\" given, expected a word and its class"},
      {"a 1\n\nb 1\nc 1\nd 1\n", ":2: \"\" given, expected a word and its class"},
      {"a 1 17\nb 1\nc 1\nd 1\n", ":1: \"a 1 17\" given, expected a word and its class"},
      {"\ta\t1\nb 1\nc 1\nd 1\n", ":1: \"\\x09a\\x091\" given, expected no empty field"},
      {"a 1\nb 1\nc 1\nb 2\nd 1\n", ":4: \"b\" is there twice"},
      {"a 1\nb \xFF\n", ":2: byte 3 is not well-formed UTF-8"},
      {"a 1\nc 2\nd 3\n", ": 1 word of the vocabulary without a class: \"b\""},
      {"zebra 1\n", ": 4 words of the vocabulary without a class: \"a\", \"b\", \"c\", \"d\""},
      {"", ": 4 words of the vocabulary without a class"},
      {"a -\nb -\nc -\nd -\n", ": has no class, expected at least one besides the shortlist"},
  };
  for (const auto& [content, expected] : cases) {
    const std::string file = write("classes", content);
    EXPECT_THAT(message_of<DataError>([&] { load_classes(file, vocabulary_); }), StartsWith(file + expected));
  }
  EXPECT_THROW(load_classes(path("missing"), vocabulary_), DataError);
  const Vocabulary larger = zipf_vocabulary(500);
  EXPECT_THAT(
      message_of<DataError>([&] { load_classes(write("classes", "w3 1\n"), larger); }),
      HasSubstr("497 words of the vocabulary without a class: \"w1\", \"w2\", \"w4\", \"w5\", \"w6\", …"));
}

TEST_F(ClassFile, TheFactoryHonoursSizesWithAFile) {
  ClassOptions options;
  options.method = "file";
  options.file = write("classes", "a 1\nb 2\nc 2\nd 3\n");
  EXPECT_THAT(make_classes(options, vocabulary_, {8, 8}, {}).cluster_of,
              ElementsAre(kShortlist, 0, 1, 1, 2, kShortlist));
  options.shortlist = 2;  // `</s>` and a
  EXPECT_THAT(make_classes(options, vocabulary_, {8, 8}, {}).cluster_of,
              ElementsAre(kShortlist, kShortlist, 0, 0, 1, kShortlist));
  options.clusters = 2;
  EXPECT_EQ(make_classes(options, vocabulary_, {8, 8}, {}).clusters, 2);
  const auto refusal = [&] {
    return message_of<UsageError>([&] { make_classes(options, vocabulary_, {8, 8}, {}); });
  };
  options.clusters = 3;
  EXPECT_THAT(refusal(), HasSubstr("classes.clusters: 3 given, but " + options.file + " makes 2"));
  options.shortlist = 5;
  EXPECT_THAT(refusal(), HasSubstr("classes.shortlist: 5 given, which leaves no word in a class"));
  options.shortlist = -1;
  EXPECT_THAT(refusal(), HasSubstr("classes.shortlist: -1 given"));
  options.file.clear();
  EXPECT_THAT(refusal(), HasSubstr("classes.file: missing"));
}

TEST_F(ClassFile, TheFactoryRefusesALimitThatWouldTakeMoreClustersThanThereMayBe) {
  const Vocabulary vocabulary = zipf_vocabulary(50'000);
  ClassOptions options;
  options.largest = 3;
  options.shortlist = 2'000;
  EXPECT_THAT(message_of<UsageError>([&] {
                make_classes(options, vocabulary, {8, 8}, {});
              }),
              StartsWith("classes.largest: 3 given, expected at least 4 for "));
}

TEST_F(ClassFile, TheFactoryMakesFrequencyBins) {
  const Vocabulary vocabulary = zipf_vocabulary(1'000);
  ClassOptions options;
  options.method = "frequency";
  options.clusters = 40;
  options.shortlist = 25;
  options.weight = "count";
  EXPECT_EQ(make_classes(options, vocabulary, {100, 100}, {}).cluster_of,
            frequency_classes(vocabulary, BinWeight::count, 25, 40).cluster_of);
  options.weight = "sqrt";
  EXPECT_EQ(make_classes(options, vocabulary, {100, 100}, {}).cluster_of,
            frequency_classes(vocabulary, BinWeight::square_root, 25, 40).cluster_of);
  options.clusters.reset();
  options.shortlist.reset();
  const WordClasses automatic = make_classes(options, vocabulary, {100, 100}, {});
  EXPECT_NO_THROW(make_layout(automatic));
  EXPECT_EQ(automatic.cluster_of, make_classes(options, vocabulary, {100, 100}, {}).cluster_of);

  const auto refusal = [&] {
    return message_of<UsageError>([&] { make_classes(options, vocabulary, {100, 100}, {}); });
  };
  options.clusters = 5'000;
  EXPECT_THAT(refusal(), HasSubstr("classes.clusters: 5000 given, expected 1 to"));
  options.file = "x";
  EXPECT_THAT(refusal(), HasSubstr("classes.file: given"));
  options.method = "brown";
  EXPECT_THAT(refusal(), HasSubstr("classes.method: \"brown\" given"));
}

}  // namespace
}  // namespace hsm
