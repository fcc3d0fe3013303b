#include "classes/bigrams.h"

#include <gtest/gtest.h>

#include <map>

#include "classes/class_text.h"

namespace hsm {
namespace {

class BigramsTest : public ClassTextTest {};

TEST_F(BigramsTest, AreThePairsOfTheText) {
  const ClassCorpus corpus = corpus_of(chain_text(1, 5'000, 80, 4));
  const std::vector<int32_t> ids = corpus.ids();
  // Items: every id modulo 17, so that several ids share one.
  std::vector<int32_t> item_of;
  for (int32_t id = 0; id < corpus.vocabulary.size(); ++id) item_of.push_back(id % 17);
  std::map<std::pair<int32_t, int32_t>, uint32_t> pairs;
  for (size_t i = 0; i < ids.size(); ++i) {
    ++pairs[{ids[i] % 17, ids[(i + 1) % ids.size()] % 17}];
  }
  ThreadPool pool(3);
  // In one pass over the text, in several, and with less room than the most frequent item needs.
  int64_t calls = 0;
  const auto read = [&](int64_t pass_bytes) {
    double done = 0;
    calls = 0;
    return count_successors(SampledTokens(corpus.tokens), item_of, 17, pool, pass_bytes, [&](double part) {
      EXPECT_GE(part, done);
      EXPECT_LE(part, 1);
      done = part;
      ++calls;
    });
  };
  const NeighbourLists after = read(kPassBytes);
  EXPECT_EQ(calls, 1);
  for (const int64_t pass_bytes : {6'000, 4}) {
    const NeighbourLists again = read(pass_bytes);
    EXPECT_GT(calls, 3);
    ASSERT_EQ(again.pairs(), after.pairs());
    for (int64_t item = 0; item < 17; ++item) {
      ASSERT_EQ(again.of(item).size(), after.of(item).size());
      for (size_t i = 0; i < after.of(item).size(); ++i) {
        EXPECT_EQ(again.of(item)[i].item, after.of(item)[i].item);
        EXPECT_EQ(again.of(item)[i].count, after.of(item)[i].count);
      }
    }
  }
  EXPECT_EQ(after.items(), 17);
  EXPECT_EQ(after.pairs(), static_cast<int64_t>(pairs.size()));
  for (int32_t item = 0; item < 17; ++item) {
    for (const Neighbour& next : after.of(item)) EXPECT_EQ(next.count, (pairs[{item, next.item}]));
  }
  const NeighbourLists before = after.transposed(9);
  EXPECT_EQ(before.items(), 9);
  size_t turned = 0;
  for (int32_t item = 0; item < 9; ++item) {
    for (const Neighbour& last : before.of(item)) EXPECT_EQ(last.count, (pairs[{last.item, item}]));
    turned += before.of(item).size();
  }
  size_t expected = 0;
  for (const auto& [pair, count] : pairs) expected += pair.second < 9 ? 1 : 0;
  EXPECT_EQ(turned, expected);
}

TEST_F(BigramsTest, ASampleOfALongTextIsSpreadOverIt) {
  TokenFileWriter writer(path("long"));
  const int64_t size = 5 * SampledTokens::kWindow + 321;
  for (int64_t i = 0; i < size; ++i) writer.add(static_cast<int32_t>(i));
  writer.commit(1, 0, 0);
  const TokenFile tokens(path("long"));
  const auto windows_of = [](const SampledTokens& sample) {
    std::vector<std::pair<int64_t, int64_t>> windows;  // first token and size
    sample.for_each_window([&](std::span<const int32_t> window) {
      windows.emplace_back(window.front(), static_cast<int64_t>(window.size()));
      EXPECT_EQ(window.back() - window.front() + 1, static_cast<int64_t>(window.size()));
    });
    return windows;
  };
  const SampledTokens all(tokens);
  EXPECT_EQ(all.size(), size);
  EXPECT_EQ(windows_of(all).size(), 6U);
  EXPECT_EQ(windows_of(all).back().first + windows_of(all).back().second, size);
  const SampledTokens some(tokens, 2 * SampledTokens::kWindow + 5);
  EXPECT_EQ(some.size(), 2 * SampledTokens::kWindow);
  ASSERT_EQ(windows_of(some).size(), 2U);
  EXPECT_EQ(windows_of(some).front().first, 0);
  EXPECT_EQ(windows_of(some).back().first, size - SampledTokens::kWindow);
}

}  // namespace
}  // namespace hsm
