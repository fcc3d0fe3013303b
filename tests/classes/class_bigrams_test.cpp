#include "classes/class_bigrams.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <map>

#include "base/random.h"
#include "classes/n_log_n.h"

namespace hsm {
namespace {

TEST(PortableLog, IsTheLogarithm) {
  for (int step = 0; step < 1140; ++step) {
    const double x = std::pow(1.0371, step);
    EXPECT_NEAR(portable_log(x), std::log(x), 4e-16 * std::log(x) + 1e-18) << x;
    EXPECT_NEAR(portable_log(1 / x), std::log(1 / x), 4e-16 * std::max(1.0, std::log(x))) << 1 / x;
  }
  EXPECT_EQ(portable_log(1), 0);
}

TEST(NLogN, HasTheSameValuesWithinItsTableAndBeyond) {
  for (const double discount : {0.0, 0.5, 0.9}) {
    const NLogN f(discount);
    EXPECT_EQ(f(0), 0);
    for (const uint32_t n : {1U, 2U, 17U, 65'535U, 65'536U, 70'001U, 4'000'000'000U}) {
      const double expected = n * std::log(n - discount);
      EXPECT_NEAR(f(n), expected, 1e-15 * std::max(1.0, std::abs(expected))) << n;
    }
    // Sums of rises, with counts on both sides of the table's end.
    const std::vector<uint32_t> counts = {0, 1, 5, 65'530, 65'535, 65'536, 1'000'000};
    for (const uint32_t more : {1U, 3U, 6U, 70'000U}) {
      std::vector<double> gain(counts.size(), 0.5);
      f.add_rises(counts.data(), more, gain.data(), counts.size());
      for (size_t i = 0; i < counts.size(); ++i) EXPECT_EQ(gain[i], 0.5 + f(counts[i] + more) - f(counts[i]));
    }
  }
}

double pair_part(int64_t n) {
  return static_cast<double>(n) * std::log(static_cast<double>(n) - 0.9);
}
double total_part(int64_t n) {
  return n == 0 ? 0 : static_cast<double>(n) * std::log(static_cast<double>(n));
}

/// A text of words [0, words) that lie in clusters, and fixed words behind them. To its neighbours a word
/// counts in a group of its own choice.
class SmallText {
 public:
  SmallText(uint64_t seed, int clusters, int fixed, int words, int tokens)
      : clusters_(clusters), groups_(clusters + fixed), words_(words) {
    const CounterRandom random(seed, Purpose::sampling);
    for (int t = 0; t < tokens; ++t) {
      const double skewed =
          random.uniform(static_cast<uint64_t>(t), 0) * random.uniform(static_cast<uint64_t>(t), 1);
      sequence_.push_back(static_cast<int>(skewed * (words + fixed)));
    }
    const auto draw = [&](uint64_t which, int word) {
      return static_cast<int>(
          random.below(static_cast<uint64_t>(clusters), which, static_cast<uint64_t>(word)));
    };
    for (int w = 0; w < words; ++w) {
      cluster_.push_back(draw(1'000'000, w));
      group_.push_back(draw(2'000'000, w));
    }
    for (int f = 0; f < fixed; ++f) group_.push_back(clusters + f);
  }

  [[nodiscard]] int words() const { return words_; }
  [[nodiscard]] int cluster(int word) const { return cluster_[static_cast<size_t>(word)]; }
  void set_cluster(int word, int cluster) { cluster_[static_cast<size_t>(word)] = cluster; }
  /// To its neighbours each word counts where it lies.
  void settle() { std::copy(cluster_.begin(), cluster_.end(), group_.begin()); }

  /// L from its definition, with one word left out if need be.
  [[nodiscard]] double objective(int left_out = -1) const {
    std::map<std::pair<int, int>, int64_t> before;
    std::map<std::pair<int, int>, int64_t> after;
    std::map<int, int64_t> totals;
    const auto counts = [&](int word) { return word < words_ && word != left_out; };
    each_pair([&](int a, int b) {
      if (counts(b)) ++before[{group(a), cluster(b)}];
      if (counts(a)) ++after[{group(b), cluster(a)}];
    });
    for (const int word : sequence_) {
      if (counts(word)) ++totals[cluster(word)];
    }
    double sum = 0;
    for (const auto& [pair, count] : before) sum += pair_part(count);
    for (const auto& [pair, count] : after) sum += pair_part(count);
    for (const auto& [c, count] : totals) sum -= 2 * total_part(count);
    return sum;
  }

  /// Of the class bigram model, but for what fixed words add among themselves.
  [[nodiscard]] double likelihood() const {
    std::map<std::pair<int, int>, int64_t> pairs;
    std::map<int, int64_t> totals;
    const auto where = [&](int word) { return word < words_ ? cluster(word) : group(word); };
    each_pair([&](int a, int b) {
      if (a < words_ || b < words_) ++pairs[{where(a), where(b)}];
    });
    for (const int word : sequence_) {
      if (word < words_) ++totals[cluster(word)];
    }
    double sum = 0;
    for (const auto& [pair, count] : pairs) sum += pair_part(count);
    for (const auto& [c, count] : totals) sum -= 2 * total_part(count);
    return sum;
  }

  [[nodiscard]] ClassBigrams counted(int left_out = -1) const {
    ClassBigrams bigrams(clusters_, groups_);
    for (int word = 0; word < words_; ++word) {
      if (word != left_out) bigrams.add(cluster(word), context(word));
    }
    return bigrams;
  }

  [[nodiscard]] WordContext context(int word) const {
    WordContext context;
    std::map<int, uint32_t> before;
    std::map<int, uint32_t> after;
    each_pair([&](int a, int b) {
      if (a == word) ++after[group(b)];
      if (b == word) ++before[group(a)];
    });
    for (const auto& [group, count] : before) context.before.push_back({group, count});
    for (const auto& [group, count] : after) context.after.push_back({group, count});
    for (const int other : sequence_) context.total += other == word ? 1 : 0;
    return context;
  }

 private:
  [[nodiscard]] int group(int word) const { return group_[static_cast<size_t>(word)]; }
  template <class Body>
  void each_pair(Body&& body) const {
    for (size_t i = 0; i < sequence_.size(); ++i) body(sequence_[i], sequence_[(i + 1) % sequence_.size()]);
  }

  int clusters_;
  int groups_;
  int words_;
  std::vector<int> sequence_;
  std::vector<int> cluster_;
  std::vector<int> group_;
};

TEST(ClassBigrams, GainsAreDifferencesOfWhatIsCountedAfresh) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const int clusters = 1 + static_cast<int>(seed % 5);
    SmallText text(seed, clusters, static_cast<int>(seed % 4), 14, 400);
    const ClassBigrams bigrams = text.counted();
    const double start = text.objective();
    std::vector<double> gain(static_cast<size_t>(clusters));
    for (int word = 0; word < text.words(); ++word) {
      const int from = text.cluster(word);
      const WordContext context = text.context(word);
      bigrams.gains(context, from, gain);
      for (int to = 0; to < clusters; ++to) {
        text.set_cluster(word, to);
        const double difference = text.objective() - start;
        EXPECT_NEAR(gain[static_cast<size_t>(to)], difference, 1e-9) << "word " << word << " to " << to;
        EXPECT_NEAR(bigrams.gain(context, from, to), difference, 1e-9);
      }
      text.set_cluster(word, from);
    }
  }
}

TEST(ClassBigrams, CountsFollowMoves) {
  SmallText text(77, 4, 2, 20, 600);
  ClassBigrams bigrams = text.counted();
  const CounterRandom random(1, Purpose::shuffle);
  for (uint64_t step = 0; step < 50; ++step) {
    const auto word = static_cast<int>(random.below(20, step, 0));
    const auto to = static_cast<int>(random.below(4, step, 1));
    const WordContext context = text.context(word);
    const double gain = bigrams.gain(context, text.cluster(word), to);
    const double before = text.objective();
    bigrams.remove(text.cluster(word), context);
    bigrams.add(to, context);
    text.set_cluster(word, to);
    EXPECT_NEAR(gain, text.objective() - before, 1e-9);
  }
}

TEST(ClassBigrams, AWordFromNowhereGainsWhatItsCountsAdd) {
  SmallText text(5, 3, 2, 10, 300);
  for (int word = 0; word < text.words(); ++word) {
    const ClassBigrams without = text.counted(word);
    const WordContext context = text.context(word);
    std::vector<double> gain(3);
    without.gains(context, ClassBigrams::kNowhere, gain);
    const int own = text.cluster(word);
    for (int to = 0; to < 3; ++to) {
      text.set_cluster(word, to);
      EXPECT_NEAR(gain[static_cast<size_t>(to)], text.objective() - text.objective(word), 1e-9);
      EXPECT_NEAR(without.gain(context, ClassBigrams::kNowhere, to), gain[static_cast<size_t>(to)], 1e-9);
    }
    text.set_cluster(word, own);
  }
}

TEST(ClassBigrams, TheLikelihoodIsThatOfTheTextOnceNeighboursCountWhereTheyLie) {
  for (uint64_t seed = 0; seed < 6; ++seed) {
    SmallText text(seed, 1 + static_cast<int>(seed % 4), static_cast<int>(seed % 3), 14, 400);
    text.settle();
    EXPECT_NEAR(text.counted().likelihood(), text.likelihood(), 1e-9);
  }
}

TEST(ClassBigrams, ClearedTheyCountAfresh) {
  const SmallText text(9, 3, 1, 10, 300);
  ClassBigrams bigrams = text.counted();
  const double likelihood = bigrams.likelihood();
  bigrams.clear();
  EXPECT_EQ(bigrams.likelihood(), 0);
  for (int word = 0; word < text.words(); ++word) bigrams.add(text.cluster(word), text.context(word));
  EXPECT_EQ(bigrams.likelihood(), likelihood);
}

}  // namespace
}  // namespace hsm
