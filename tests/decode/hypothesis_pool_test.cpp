#include "decode/hypothesis_pool.h"

#include <gtest/gtest.h>

#include <random>
#include <vector>

namespace hsm {
namespace {

constexpr uint64_t kPlenty = uint64_t{64} << 20;

/// A search's use of the pool beside plain copies of all words.
class Reference {
 public:
  Reference(int64_t live, int64_t finished, int64_t max_length)
      : arena_(kPlenty),
        pool_(arena_, live, finished, max_length),
        most_live_(live),
        most_finished_(finished) {
    live_.push_back({kNoNode, {}});
  }

  /// Every new hypothesis takes a parent among the `spread` first and a random word.
  void step(size_t spread, std::mt19937& random) {
    if (pool_.collection_due(most_live_)) collect();
    std::vector<Entry> next;
    for (int64_t i = 0; i < most_live_; ++i) {
      const Entry& parent = live_[random() % std::min(spread, live_.size())];
      const auto word = static_cast<int32_t>(random() % 1000);
      next.push_back({pool_.add(parent.node, word), parent.words});
      next.back().words.push_back(word);
    }
    live_ = std::move(next);
  }
  void finish(size_t index) {
    if (static_cast<int64_t>(finished_.size()) < most_finished_) {
      finished_.push_back(live_[index]);
    } else {
      finished_[index % finished_.size()] = live_[index];
    }
  }
  void collect() {
    std::vector<int32_t> live;
    std::vector<int32_t> finished;
    for (const Entry& entry : live_) live.push_back(entry.node);
    for (const Entry& entry : finished_) finished.push_back(entry.node);
    pool_.collect(live, finished);
    for (size_t i = 0; i < live.size(); ++i) live_[i].node = live[i];
    for (size_t i = 0; i < finished.size(); ++i) finished_[i].node = finished[i];
  }
  void expect_same_words() const {
    for (const auto* list : {&live_, &finished_}) {
      for (const Entry& entry : *list) {
        std::vector<int32_t> words(entry.words.size());
        pool_.words(entry.node, words);
        ASSERT_EQ(words, entry.words);
      }
    }
  }
  [[nodiscard]] const HypothesisPool& pool() const { return pool_; }

 private:
  struct Entry {
    int32_t node;
    std::vector<int32_t> words;
  };
  Arena arena_;
  HypothesisPool pool_;
  int64_t most_live_;
  int64_t most_finished_;
  std::vector<Entry> live_;
  std::vector<Entry> finished_;
};

TEST(HypothesisPool, GivesBackTheWordsOfEveryHypothesis) {
  std::mt19937 random(3);
  for (const size_t spread : {1, 2, 3, 100}) {
    for (const int64_t live : {1, 2, 7, 33}) {
      Reference search(live, 5, 300);
      for (int step = 0; step < 300; ++step) {
        search.step(spread, random);
        if (random() % 50 == 0) search.finish(random() % static_cast<size_t>(live));
        if (random() % 97 == 0) search.collect();
        if (random() % 53 == 0) search.expect_same_words();
      }
      search.expect_same_words();
    }
  }
}

TEST(HypothesisPool, StaysSmallWhereHypothesesShareTheirPast) {
  std::mt19937 random(4);
  constexpr int64_t kLength = 2'500;
  Reference search(64, 3, kLength);
  for (int64_t step = 0; step < kLength; ++step) {
    search.step(8, random);
    if (step % 500 == 17) search.finish(5);
  }
  EXPECT_LT(search.pool().peak(), 8'000);  // of 160,000 made
  EXPECT_GT(search.pool().committed(), kLength / 2);
  search.expect_same_words();
}

TEST(HypothesisPool, HoldsHypothesesThatShareNothing) {
  constexpr int64_t kLive = 16;
  constexpr int64_t kFinished = 4;
  constexpr int64_t kLength = 500;
  Arena arena(kPlenty);
  HypothesisPool pool(arena, kLive, kFinished, kLength);
  std::vector<int32_t> live(kLive, kNoNode);
  std::vector<int32_t> finished;
  for (int32_t step = 0; step < kLength; ++step) {
    if (pool.collection_due(kLive)) pool.collect(live, finished);
    for (int32_t i = 0; i < kLive; ++i)
      live[static_cast<size_t>(i)] = pool.add(live[static_cast<size_t>(i)], i * kLength + step);
  }
  EXPECT_EQ(pool.peak(), kLive * kLength);
  for (int32_t i = 0; i < kLive; ++i) {
    std::vector<int32_t> words(kLength);
    pool.words(live[static_cast<size_t>(i)], words);
    for (int32_t step = 0; step < kLength; ++step)
      ASSERT_EQ(words[static_cast<size_t>(step)], i * kLength + step);
  }
}

TEST(HypothesisPool, CommitsAllOfALoneHypothesis) {
  Arena arena(kPlenty);
  HypothesisPool pool(arena, 1, 1, 10);
  int32_t node = kNoNode;
  for (int32_t word = 0; word < 7; ++word) node = pool.add(node, word);
  pool.collect({&node, 1}, {});
  EXPECT_EQ(node, kNoNode);
  EXPECT_EQ(pool.size(), 0);
  EXPECT_EQ(pool.committed(), 7);
  std::vector<int32_t> words(7);
  pool.words(node, words);
  EXPECT_EQ(words, (std::vector<int32_t>{0, 1, 2, 3, 4, 5, 6}));
}

TEST(HypothesisPool, StartsAfreshAfterClear) {
  Arena arena(kPlenty);
  HypothesisPool pool(arena, 2, 1, 10);
  int32_t node = pool.add(kNoNode, 1);
  pool.collect({&node, 1}, {});
  pool.clear();
  EXPECT_EQ(pool.size(), 0);
  EXPECT_EQ(pool.committed(), 0);
  node = pool.add(kNoNode, 9);
  std::vector<int32_t> words(1);
  pool.words(node, words);
  EXPECT_EQ(words[0], 9);
}

}  // namespace
}  // namespace hsm
