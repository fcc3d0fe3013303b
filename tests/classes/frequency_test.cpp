#include "classes/frequency.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>

#include "base/error.h"
#include "base/random.h"
#include "classes/vocabularies.h"
#include "text/fixture.h"

namespace hsm {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

double weight_of(const Vocabulary& vocabulary, int32_t id, BinWeight weight) {
  const auto count = static_cast<double>(std::max<int64_t>(1, vocabulary.count(id)));
  return weight == BinWeight::count ? count : std::sqrt(count);
}

struct Bin {
  double sum = 0;
  double first = 0;  // weight of the most frequent word
  double last = 0;   // and of the rarest
  int64_t words = 0;
};

// Bins in order; fails when words are not in order of rank or a bin is empty.
std::vector<Bin> bins_of(const Vocabulary& vocabulary, const WordClasses& classes, BinWeight weight) {
  std::vector<Bin> bins(static_cast<size_t>(classes.clusters));
  int32_t before = 0;
  for (int32_t id = 0; id < vocabulary.size(); ++id) {
    const int32_t cluster = classes.cluster_of[static_cast<size_t>(id)];
    if (cluster == kShortlist) continue;
    EXPECT_TRUE(cluster == before || cluster == before + 1) << "word " << id;
    before = cluster;
    Bin& bin = bins.at(static_cast<size_t>(cluster));
    bin.last = weight_of(vocabulary, id, weight);
    if (bin.words++ == 0) bin.first = bin.last;
    bin.sum += bin.last;
  }
  for (const Bin& bin : bins) EXPECT_GT(bin.words, 0);
  return bins;
}

TEST(FrequencyBins, AreAsNearToTheirShareAsWholeWordsAllow) {
  const CounterRandom random(11, Purpose::shuffle);
  for (uint64_t trial = 0; trial < 60; ++trial) {
    const auto words = static_cast<int64_t>(3 + random.below(400, trial, 0));
    const Vocabulary vocabulary =
        zipf_vocabulary(words, 10 + static_cast<double>(random.below(5000, trial, 1)));
    const BinWeight weight = trial % 2 == 0 ? BinWeight::count : BinWeight::square_root;
    const auto shortlist = static_cast<int64_t>(random.below(static_cast<uint64_t>(words) / 2, trial, 2));
    const RankedWords ranked(vocabulary, weight);
    const int64_t binned = ranked.size() - ranked.first_binned(shortlist);
    const auto clusters = static_cast<int64_t>(1 + random.below(static_cast<uint64_t>(binned), trial, 3));
    const WordClasses classes = frequency_classes(vocabulary, weight, shortlist, clusters);
    ASSERT_EQ(classes.clusters, clusters);
    const std::vector<Bin> bins = bins_of(vocabulary, classes, weight);
    double left = 0;
    int64_t words_left = 0;
    for (const Bin& bin : bins) {
      left += bin.sum;
      words_left += bin.words;
    }
    ASSERT_EQ(words_left, binned);
    for (size_t b = 0; b < bins.size(); ++b) {
      const auto bins_left = static_cast<int64_t>(bins.size() - b);
      const double share = left / static_cast<double>(bins_left);
      const double off = std::abs(bins[b].sum - share);
      // Neither without its last word nor with the first of the next bin would it come nearer.
      if (bins[b].words > 1) {
        EXPECT_LE(off, std::abs(bins[b].sum - bins[b].last - share) * (1 + 1e-9) + 1e-9);
      }
      const bool room = words_left - bins[b].words > bins_left - 1;
      if (bins_left > 1 && room) {
        EXPECT_LE(off, std::abs(bins[b].sum + bins[b + 1].first - share) * (1 + 1e-9) + 1e-9);
      }
      left -= bins[b].sum;
      words_left -= bins[b].words;
    }
  }
}

TEST(FrequencyBins, HaveEqualSumsWhenNoWordIsHeavy) {
  const Vocabulary vocabulary = zipf_vocabulary(10'000);
  for (const BinWeight weight : {BinWeight::count, BinWeight::square_root}) {
    const WordClasses classes = frequency_classes(vocabulary, weight, 200, 100);
    const std::vector<Bin> bins = bins_of(vocabulary, classes, weight);
    double total = 0;
    for (const Bin& bin : bins) total += bin.sum;
    for (const Bin& bin : bins) EXPECT_NEAR(bin.sum, total / 100, bins[0].first);
  }
}

TEST(FrequencyBins, TheShortlistIsTheMostFrequentWordsAndTheReservedSymbols) {
  const Vocabulary vocabulary = zipf_vocabulary(100);
  ASSERT_LT(vocabulary.end_of_sentence(), 5);
  ASSERT_EQ(vocabulary.unknown(), 99);
  const auto shortlist_of = [&](int64_t shortlist) {
    const WordClasses classes = frequency_classes(vocabulary, BinWeight::square_root, shortlist, 4);
    std::vector<int32_t> ids;
    for (int32_t id = 0; id < 100; ++id) {
      if (classes.cluster_of[static_cast<size_t>(id)] == kShortlist) ids.push_back(id);
    }
    return ids;
  };
  EXPECT_THAT(shortlist_of(0), ElementsAre(vocabulary.end_of_sentence(), 99));
  EXPECT_THAT(shortlist_of(5), ElementsAre(0, 1, 2, 3, 4, 99));
}

TEST(FrequencyBins, WordsNeverSeenWeighAsThoseSeenOnce) {
  std::vector<Vocabulary::Entry> entries;
  for (int i = 0; i < 100; ++i) entries.push_back({"w" + std::to_string(1000 + i), 0});
  const Vocabulary vocabulary = Vocabulary::from_counts(std::move(entries));
  for (const Bin& bin :
       bins_of(vocabulary, frequency_classes(vocabulary, BinWeight::count, 0, 20), BinWeight::count)) {
    EXPECT_EQ(bin.words, 5);
  }
}

TEST(FrequencyBins, SizesThatCannotBeAreRefusedWithTheLimits) {
  const Vocabulary vocabulary = zipf_vocabulary(50);
  const auto refusal = [&](int64_t shortlist, int64_t clusters) {
    return message_of<UsageError>(
        [&] { frequency_classes(vocabulary, BinWeight::count, shortlist, clusters); });
  };
  EXPECT_THAT(refusal(0, 0), HasSubstr("classes.clusters: 0 given, expected 1 to 48"));
  EXPECT_THAT(refusal(0, 49), HasSubstr("classes.clusters: 49 given, expected 1 to 48"));
  EXPECT_THAT(refusal(40, 10), HasSubstr("classes.clusters: 10 given, expected 1 to 9,"));
  EXPECT_THAT(refusal(-1, 3), HasSubstr("classes.shortlist: -1 given"));
  EXPECT_THAT(refusal(49, 1), HasSubstr("classes.shortlist: 49 given, but the vocabulary has 50 words"));
  EXPECT_THAT(refusal(1000, 1), HasSubstr("classes.shortlist: 1000 given"));
  EXPECT_NO_THROW(frequency_classes(vocabulary, BinWeight::count, 0, 48));
  EXPECT_THAT(message_of<UsageError>([] { parse_bin_weight("log"); }),
              HasSubstr("classes.weight: \"log\" given, expected \"count\" or \"sqrt\""));
}

}  // namespace
}  // namespace hsm
