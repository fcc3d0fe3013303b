#include "classes/exchange.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "base/hash.h"
#include "classes/class_likelihood.h"
#include "classes/class_text.h"
#include "classes/frequency.h"
#include "classes/vocabularies.h"

namespace hsm {
namespace {

using ::testing::Gt;
using ::testing::HasSubstr;

const ExchangeReport kQuiet = [](const ExchangeProgress&) {};

class ExchangeTest : public ClassTextTest {
 protected:
  static WordClasses classes_of(const ClassCorpus& corpus, const ExchangeOptions& options, int threads = 1) {
    ThreadPool pool(threads);
    return exchange_classes(corpus.tokens, corpus.vocabulary, options, pool, kQuiet);
  }

  // Mean log-likelihood of a token under the class bigram model, from the sequence of tokens. A pair counts
  // as if it had been seen 0.9 times less.
  static double likelihood(const ClassCorpus& corpus, const WordClasses& classes) {
    const std::vector<int32_t> ids = corpus.ids();
    std::map<int32_t, double> words;
    std::map<int32_t, double> groups;
    std::map<std::pair<int32_t, int32_t>, double> pairs;
    const auto group = [&](int32_t id) {
      const int32_t cluster = classes.cluster_of[static_cast<size_t>(id)];
      return cluster == kShortlist ? -1 - id : cluster;
    };
    for (size_t i = 0; i < ids.size(); ++i) {
      const int32_t next = ids[(i + 1) % ids.size()];
      ++words[ids[i]];
      ++groups[group(ids[i])];
      ++pairs[{group(ids[i]), group(next)}];
    }
    // Σ over tokens of log P(group | group before) + log P(word | group).
    double sum = 0;
    for (size_t i = 0; i < ids.size(); ++i) {
      const int32_t next = ids[(i + 1) % ids.size()];
      sum += std::log((pairs[{group(ids[i]), group(next)}] - 0.9) / groups[group(ids[i])]);
      sum += std::log(words[next] / groups[group(next)]);
    }
    return sum / static_cast<double>(ids.size());
  }

  static std::vector<int64_t> sizes_of(const WordClasses& classes) {
    std::vector<int64_t> sizes(static_cast<size_t>(classes.clusters));
    for (const int32_t cluster : classes.cluster_of) {
      if (cluster != kShortlist) ++sizes[static_cast<size_t>(cluster)];
    }
    return sizes;
  }
};

TEST_F(ExchangeTest, FindsTheKindsOfWords) {
  // With clusters to spare, since a local optimum may join two kinds.
  const ClassCorpus corpus = corpus_of(chain_text(3, 40'000, 60, 5, 0.05));
  const WordClasses classes = classes_of(corpus, {.clusters = 10});
  std::map<int32_t, std::set<int64_t>> kinds_of_cluster;
  for (int32_t id = 0; id < corpus.vocabulary.size(); ++id) {
    const std::string& word = corpus.vocabulary.word(id);
    if (word[0] != 'w') continue;
    kinds_of_cluster[classes.cluster_of[static_cast<size_t>(id)]].insert(std::stoll(word.substr(1)) % 5);
  }
  for (const auto& [cluster, kinds] : kinds_of_cluster) EXPECT_EQ(kinds.size(), 1U) << cluster;
}

TEST_F(ExchangeTest, NoWordCouldMoveAndGainMuch) {
  for (const int64_t shortlist : {0, 4}) {
    const ClassCorpus corpus = corpus_of(chain_text(8, 3'000, 30, 3, 0.4));
    const WordClasses classes = classes_of(corpus, {.shortlist = shortlist, .clusters = 4, .rounds = 100});
    const double reached = likelihood(corpus, classes);
    const std::vector<int64_t> sizes = sizes_of(classes);
    WordClasses other = classes;
    for (size_t id = 0; id < other.cluster_of.size(); ++id) {
      const int32_t own = classes.cluster_of[id];
      EXPECT_EQ(own == kShortlist, static_cast<int64_t>(id) < shortlist ||
                                       static_cast<int32_t>(id) == corpus.vocabulary.unknown() ||
                                       static_cast<int32_t>(id) == corpus.vocabulary.end_of_sentence());
      if (own == kShortlist || sizes[static_cast<size_t>(own)] == 1) continue;
      for (int32_t cluster = 0; cluster < classes.clusters; ++cluster) {
        other.cluster_of[id] = cluster;
        // A round looks at words among neighbours that stay, and the last gains little: something is left.
        EXPECT_LE(likelihood(corpus, other), reached + 2e-3)
            << corpus.vocabulary.word(static_cast<int32_t>(id));
      }
      other.cluster_of[id] = own;
    }
    const double bins =
        likelihood(corpus, frequency_classes(corpus.vocabulary, BinWeight::square_root, shortlist, 4));
    EXPECT_GT(reached, bins + 0.1);
  }
}

TEST_F(ExchangeTest, IsAsGoodAsTheBestPartitionOfAFewWords) {
  // All partitions of 7 words into 2 clusters.
  const ClassCorpus corpus = corpus_of(chain_text(21, 2'000, 8, 2, 0.2));
  const int64_t words = corpus.vocabulary.size() - 2;
  ASSERT_LE(words, 8);
  std::vector<int32_t> ids;
  for (int32_t id = 0; id < corpus.vocabulary.size(); ++id) {
    if (id != corpus.vocabulary.unknown() && id != corpus.vocabulary.end_of_sentence()) ids.push_back(id);
  }
  double best = -1e9;
  WordClasses some{std::vector<int32_t>(static_cast<size_t>(corpus.vocabulary.size()), kShortlist), 2};
  for (uint32_t mask = 1; mask + 1 < (1U << ids.size()); ++mask) {
    for (size_t i = 0; i < ids.size(); ++i) {
      some.cluster_of[static_cast<size_t>(ids[i])] = static_cast<int32_t>((mask >> i) & 1);
    }
    best = std::max(best, likelihood(corpus, some));
  }
  EXPECT_NEAR(likelihood(corpus, classes_of(corpus, {.clusters = 2})), best, 1e-9);
}

TEST_F(ExchangeTest, TheReportedLikelihoodIsThatOfTheClasses) {
  const ClassCorpus corpus = corpus_of(chain_text(5, 5'000, 200, 6));
  double reported = 0;
  int64_t rounds = 0;
  ThreadPool pool(2);
  const WordClasses classes =
      exchange_classes(corpus.tokens, corpus.vocabulary, {.shortlist = 10, .clusters = 9}, pool,
                       [&](const ExchangeProgress& progress) {
                         if (!progress.round_done) return;
                         EXPECT_EQ(progress.round, ++rounds);
                         EXPECT_GE(progress.log_likelihood, rounds == 1 ? -100 : reported);
                         reported = progress.log_likelihood;
                       });
  EXPECT_THAT(rounds, Gt(1));
  EXPECT_NEAR(reported, likelihood(corpus, classes), 1e-9);
  EXPECT_NEAR(class_bigram_likelihood(corpus.tokens, corpus.vocabulary, classes, pool, [](double) {}),
              reported, 1e-9);
}

TEST_F(ExchangeTest, IsTheSameForAnyNumberOfThreads) {
  const ClassCorpus corpus = corpus_of(chain_text(4, 60'000, 3'000, 12));
  for (const int64_t exchanged : {int64_t{1} << 17, int64_t{400}}) {
    ExchangeOptions options{.shortlist = 50, .clusters = 30, .exchanged = exchanged};
    options.limits = {200, 1e-5, {200, 400}};
    const WordClasses one = classes_of(corpus, options, 1);
    EXPECT_EQ(one.clusters, 30);
    for (const int threads : {2, 3, 7}) {
      EXPECT_EQ(classes_of(corpus, options, threads).cluster_of, one.cluster_of) << threads << " threads";
    }
  }
}

TEST_F(ExchangeTest, IsTheSameOnEveryMachine) {
  // Made once; another processor, compiler or C library must give the same.
  const ClassCorpus corpus = corpus_of(chain_text(4, 30'000, 2'000, 12));
  ExchangeOptions options{.shortlist = 50, .clusters = 30, .exchanged = 900};
  options.limits = {200, 1e-5, {200, 400}};
  const WordClasses classes = classes_of(corpus, options, 2);
  Hasher hasher;
  hasher.add(classes.cluster_of.data(), classes.cluster_of.size() * sizeof(int32_t));
  EXPECT_EQ(hasher.hex(), "fadf3033d64b75a3");
}

TEST_F(ExchangeTest, IsTheSameHoweverOftenTheTextIsRead) {
  const ClassCorpus corpus = corpus_of(chain_text(4, 20'000, 1'000, 12));
  const ExchangeOptions options{.shortlist = 50, .clusters = 20, .exchanged = 300};
  const WordClasses once = classes_of(corpus, options);
  for (const int64_t pass_bytes : {20'000, 16}) {
    ExchangeOptions often = options;
    often.pass_bytes = pass_bytes;
    EXPECT_EQ(classes_of(corpus, often).cluster_of, once.cluster_of) << pass_bytes;
  }
}

TEST_F(ExchangeTest, LearnsFromASampleOfALongText) {
  // A text of one window, over and over, has samples that are twice the window.
  const CounterRandom random(31, Purpose::sampling);
  constexpr int64_t kWords = 302;
  std::vector<int32_t> window(SampledTokens::kWindow);
  std::vector<Vocabulary::Entry> entries{{"</s>", 0}, {"<unk>", 0}};
  for (int64_t word = 2; word < kWords; ++word) entries.push_back({"w" + std::to_string(word), 0});
  uint64_t kind = 0;
  for (size_t i = 0; i < window.size(); ++i) {
    kind = random.uniform(i, 0) < 0.1 ? random.below(6, i, 1) : (kind + 1) % 6;
    const double skewed = random.uniform(i, 2) * random.uniform(i, 3);
    window[i] = static_cast<int32_t>(2 + 6 * static_cast<uint64_t>(50 * skewed) + kind);
    ++entries[static_cast<size_t>(window[i])].count;
  }
  const auto repeated = [&](int times) {
    const std::string name = path("repeated" + std::to_string(times));
    std::vector<Vocabulary::Entry> counted = entries;
    for (Vocabulary::Entry& entry : counted) entry.count *= times;
    Vocabulary vocabulary = Vocabulary::from_counts(counted);
    std::vector<int32_t> ids;
    for (const Vocabulary::Entry& entry : entries) ids.push_back(*vocabulary.find(entry.word));
    TokenFileWriter writer(name);
    for (int i = 0; i < times; ++i) {
      for (const int32_t number : window) writer.add(ids[static_cast<size_t>(number)]);
    }
    writer.commit(1, 0, 0);
    return ClassCorpus{std::move(vocabulary), TokenFile(name)};
  };
  ExchangeOptions options{.shortlist = 10, .clusters = 12, .exchanged = 200};
  options.limits = {100, 1e-6, {200, 400}};
  const WordClasses expected = classes_of(repeated(2), options);
  options.most_tokens = 2 * SampledTokens::kWindow;
  EXPECT_EQ(classes_of(repeated(8), options).cluster_of, expected.cluster_of);
}

TEST_F(ExchangeTest, OneClusterTakesAllWords) {
  const ClassCorpus corpus = corpus_of(chain_text(4, 2'000, 100, 5));
  const WordClasses classes = classes_of(corpus, {.shortlist = 10, .clusters = 1});
  ASSERT_EQ(classes.clusters, 1);
  for (int32_t id = 0; id < corpus.vocabulary.size(); ++id) {
    const bool reserved = id == corpus.vocabulary.unknown() || id == corpus.vocabulary.end_of_sentence();
    EXPECT_EQ(classes.cluster_of[static_cast<size_t>(id)], reserved || id < 10 ? kShortlist : 0);
  }
}

TEST_F(ExchangeTest, ClustersStayWithinTheirLimit) {
  const ClassCorpus corpus = corpus_of(chain_text(6, 20'000, 700, 4));
  const int64_t clustered = corpus.vocabulary.size() - 22;
  for (const int64_t exchanged : {100'000, 150}) {
    for (const int64_t largest : {(clustered + 19) / 20, clustered / 10}) {
      ExchangeOptions options{.shortlist = 20, .clusters = 20, .exchanged = exchanged};
      options.limits.largest = largest;
      int64_t words = 0;
      for (const int64_t size : sizes_of(classes_of(corpus, options))) {
        EXPECT_GE(size, 1);
        EXPECT_LE(size, largest);
        words += size;
      }
      EXPECT_GE(words, clustered);
    }
  }
}

TEST_F(ExchangeTest, APriceOnTimeMakesStepsCheaper) {
  const ClassCorpus corpus = corpus_of(chain_text(6, 60'000, 4'000, 8));
  const StepShape step{100, 200};
  const auto cost = [&](double price) {
    ExchangeOptions options{.shortlist = 50, .clusters = 40};
    options.limits = {0, price, step};
    return expected_step_cost(step, corpus.vocabulary, classes_of(corpus, options));
  };
  EXPECT_LT(cost(1e-4), cost(0));
  EXPECT_LT(cost(1e-3), cost(1e-4));
}

TEST_F(ExchangeTest, RareWordsFollowTheirNeighbours) {
  const ClassCorpus corpus = corpus_of(chain_text(3, 40'000, 1'000, 5, 0.05));
  const WordClasses classes = classes_of(corpus, {.clusters = 5, .exchanged = 60});
  // Clusters by the kind of their frequent words.
  std::map<int64_t, std::map<int32_t, int>> votes;
  const auto kind_of = [&](int32_t id) { return std::stoll(corpus.vocabulary.word(id).substr(1)) % 5; };
  for (int32_t id = 0; id < 40; ++id) {
    if (corpus.vocabulary.word(id)[0] == 'w')
      ++votes[kind_of(id)][classes.cluster_of[static_cast<size_t>(id)]];
  }
  int placed = 0;
  int right = 0;
  for (int32_t id = 100; id < corpus.vocabulary.size(); ++id) {
    if (corpus.vocabulary.word(id)[0] != 'w') continue;
    const auto& vote = votes[kind_of(id)];
    const auto best = std::max_element(vote.begin(), vote.end(),
                                       [](const auto& a, const auto& b) { return a.second < b.second; });
    ++placed;
    right += best->first == classes.cluster_of[static_cast<size_t>(id)] ? 1 : 0;
  }
  EXPECT_GT(placed, 500);
  EXPECT_GT(right, placed * 9 / 10);
}

TEST_F(ExchangeTest, WordsThatTheTextLacksAreSpread) {
  const std::string text = write("text", "a b a b c\nb a c a b\n");
  std::string list = "a\nb\nc\n";
  for (int i = 0; i < 97; ++i) list += "never" + std::to_string(i) + "\n";
  Vocabulary vocabulary = read_training_text({text}, {}, {.file = write("words", list)}, path("tokens"));
  const ClassCorpus corpus{std::move(vocabulary), TokenFile(path("tokens"))};
  for (const int64_t exchanged : {100'000, 5}) {
    for (const int64_t size : sizes_of(classes_of(corpus, {.clusters = 5, .exchanged = exchanged}))) {
      EXPECT_GE(size, 8);
      EXPECT_LE(size, 32);
    }
  }
}

TEST_F(ExchangeTest, ExistForTheSmallestTexts) {
  for (const char* text : {"a\n", "a b\n", "a a a\n", "a b c\nc\n"}) {
    const ClassCorpus corpus = corpus_of(text);
    const WordClasses classes = classes_of(corpus, {.clusters = 1});
    EXPECT_EQ(classes.clusters, 1) << text;
    EXPECT_NO_THROW(make_layout(classes));
  }
}

TEST_F(ExchangeTest, SizesThatCannotBeAreRefusedWithTheLimits) {
  const ClassCorpus corpus = corpus_of("a b c d e f g h\n");
  const auto refusal = [&](ExchangeOptions options) {
    return message_of<UsageError>([&] { classes_of(corpus, options); });
  };
  EXPECT_THAT(refusal({.clusters = 9}), HasSubstr("classes.clusters: 9 given, expected 1 to 8"));
  EXPECT_THAT(refusal({.shortlist = 10}), HasSubstr("classes.shortlist: 10 given"));
  EXPECT_THAT(refusal({.clusters = 3, .limits = {.largest = 2}}),
              HasSubstr("classes.largest: 2 given, expected at least 3 for 8 words in 3 clusters"));
  EXPECT_NO_THROW(classes_of(corpus, {.clusters = 3, .limits = {.largest = 3}}));
  const ClassCorpus large{zipf_vocabulary(30'000), TokenFile(path("tokens"))};
  EXPECT_THAT(message_of<UsageError>([&] { classes_of(large, {.clusters = kMostExchangeClusters + 1}); }),
              HasSubstr("classes.clusters: 20001 given, expected at most 20000"));
}

TEST_F(ExchangeTest, AReportCanEndItAtEachStage) {
  const ClassCorpus corpus = corpus_of(chain_text(4, 2'000, 50, 5));
  struct Enough {};
  ThreadPool pool(2);
  for (const ExchangeStage stage :
       {ExchangeStage::counting, ExchangeStage::exchanging, ExchangeStage::placing}) {
    EXPECT_THROW(exchange_classes(corpus.tokens, corpus.vocabulary, {.clusters = 4, .exchanged = 20}, pool,
                                  [&](const ExchangeProgress& progress) {
                                    if (progress.stage == stage) throw Enough{};
                                  }),
                 Enough);
  }
}

}  // namespace
}  // namespace hsm
