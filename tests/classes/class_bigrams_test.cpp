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
  for (double x = 1; x < 1e18; x *= 1.0371) {
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

/// A text of words with groups, whose likelihood is counted afresh from the sequence whenever asked.
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
    for (int w = 0; w < words; ++w) {
      group_.push_back(static_cast<int>(
          random.below(static_cast<uint64_t>(clusters), 1'000'000, static_cast<uint64_t>(w))));
    }
    for (int f = 0; f < fixed; ++f) group_.push_back(clusters + f);
  }

  [[nodiscard]] int words() const { return words_; }
  [[nodiscard]] int group(int word) const { return group_[static_cast<size_t>(word)]; }
  void set_group(int word, int group) { group_[static_cast<size_t>(word)] = group; }

  [[nodiscard]] double likelihood(int left_out = -1) const {
    std::map<std::pair<int, int>, int64_t> pairs;
    std::map<int, int64_t> totals;
    each_pair([&](int a, int b) {
      if (a == left_out || b == left_out) return;
      ++pairs[{group(a), group(b)}];
    });
    for (const int word : sequence_) totals[group(word)] += word == left_out ? 0 : 1;
    const auto f = [](int64_t n, double discount) {
      return n == 0 ? 0.0 : static_cast<double>(n) * std::log(static_cast<double>(n) - discount);
    };
    double sum = 0;
    for (const auto& [pair, count] : pairs) sum += f(count, 0.9);
    for (const auto& [group, count] : totals) sum -= 2 * f(count, 0);
    return sum;
  }

  [[nodiscard]] ClassBigrams counted(int left_out = -1) const {
    ClassBigrams bigrams(clusters_, groups_);
    std::map<std::pair<int, int>, uint32_t> pairs;
    std::map<int, uint32_t> totals;
    each_pair([&](int a, int b) {
      if (a != left_out && b != left_out) ++pairs[{group(a), group(b)}];
    });
    for (const int word : sequence_) totals[group(word)] += word == left_out ? 0 : 1;
    for (const auto& [pair, count] : pairs) bigrams.add_pairs(pair.first, pair.second, count);
    for (const auto& [group, count] : totals) bigrams.add_tokens(group, count);
    return bigrams;
  }

  [[nodiscard]] WordContext context(int word) const {
    WordContext context;
    std::map<int, uint32_t> before;
    std::map<int, uint32_t> after;
    each_pair([&](int a, int b) {
      if (a == word && b == word) {
        ++context.self;
      } else if (a == word) {
        ++after[group(b)];
      } else if (b == word) {
        ++before[group(a)];
      }
    });
    for (const auto& [group, count] : before) context.before.push_back({group, count});
    for (const auto& [group, count] : after) context.after.push_back({group, count});
    for (const int other : sequence_) context.total += other == word ? 1 : 0;
    return context;
  }

 private:
  template <class Body>
  void each_pair(Body&& body) const {
    for (size_t i = 0; i < sequence_.size(); ++i) body(sequence_[i], sequence_[(i + 1) % sequence_.size()]);
  }

  int clusters_;
  int groups_;
  int words_;
  std::vector<int> sequence_;
  std::vector<int> group_;
};

TEST(ClassBigrams, GainsAreDifferencesOfTheLikelihoodCountedAfresh) {
  for (uint64_t seed = 0; seed < 12; ++seed) {
    const int clusters = 1 + static_cast<int>(seed % 5);
    const int fixed = static_cast<int>(seed % 4);
    SmallText text(seed, clusters, fixed, 14, 400);
    const ClassBigrams bigrams = text.counted();
    EXPECT_NEAR(bigrams.likelihood(), text.likelihood(), 1e-9);
    ClassBigrams::Scratch scratch = bigrams.scratch();
    std::vector<double> gain(static_cast<size_t>(clusters));
    for (int word = 0; word < text.words(); ++word) {
      const int from = text.group(word);
      const WordContext context = text.context(word);
      bigrams.gains(context, from, scratch, gain);
      for (int to = 0; to < clusters; ++to) {
        text.set_group(word, to);
        const double difference = text.likelihood() - bigrams.likelihood();
        EXPECT_NEAR(gain[static_cast<size_t>(to)], difference, 1e-9) << "word " << word << " to " << to;
        EXPECT_NEAR(bigrams.gain(context, from, to), difference, 1e-9);
      }
      text.set_group(word, from);
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
    bigrams.remove(text.group(word), context);
    bigrams.add(to, context);
    text.set_group(word, to);
  }
  const ClassBigrams afresh = text.counted();
  for (int64_t from = 0; from < bigrams.groups(); ++from) {
    for (int64_t to = 0; to < bigrams.groups(); ++to) {
      if (from >= 4 && to >= 4) continue;
      EXPECT_EQ(bigrams.pairs(from, to), afresh.pairs(from, to));
    }
  }
  EXPECT_NEAR(bigrams.likelihood(), text.likelihood(), 1e-9);
}

TEST(ClassBigrams, AWordFromNowhereGainsWhatItsCountsAdd) {
  const SmallText text(5, 3, 2, 10, 300);
  for (int word = 0; word < text.words(); ++word) {
    const ClassBigrams without = text.counted(word);
    const WordContext context = text.context(word);
    ClassBigrams::Scratch scratch = without.scratch();
    std::vector<double> gain(3);
    without.gains(context, ClassBigrams::kNowhere, scratch, gain);
    for (int to = 0; to < 3; ++to) {
      ClassBigrams with = without;
      with.add(to, context);
      EXPECT_NEAR(gain[static_cast<size_t>(to)], with.likelihood() - without.likelihood(), 1e-9);
      EXPECT_NEAR(without.gain(context, ClassBigrams::kNowhere, to), gain[static_cast<size_t>(to)], 1e-9);
    }
  }
}

}  // namespace
}  // namespace hsm
