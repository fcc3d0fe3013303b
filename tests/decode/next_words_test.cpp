#include "decode/next_words.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/error.h"
#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

std::vector<WordProbability> expected(const Scorer& scorer, const std::vector<int32_t>& prompt, size_t count,
                                      const Allowed& allowed) {
  History history(scorer);
  history.feed(scorer.end_of_sentence());
  for (const int32_t token : prompt) history.feed(token);
  const auto log_probs = history.word_log_probs();
  std::vector<WordProbability> words;
  for (int32_t word = 0; word < scorer.words(); ++word) {
    const double log_prob = log_probs[static_cast<size_t>(word)];
    if (!std::isinf(log_prob) && allowed(word)) words.push_back({word, log_prob});
  }
  std::stable_sort(words.begin(), words.end(), [](const WordProbability& a, const WordProbability& b) {
    return a.log_prob > b.log_prob;
  });
  words.resize(std::min(words.size(), count));
  return words;
}

TEST(NextWords, AreTheBestOfAllWordsTheEndSymbolAmongThem) {
  const Tables kTables[] = {Tables::smooth, Tables::coarse, Tables::zeros};
  for (uint32_t round = 0; round < 30; ++round) {
    const ScriptedScorer scorer(random_shape(50, static_cast<int32_t>(round % 12), 6, round),
                                kTables[round % 3], round);
    const auto allowed = [&](int32_t word) { return round % 2 == 0 || word % 4 != 1; };
    for (const int64_t count : {1, 3, 49, 50, 1000}) {
      DecoderSettings settings;
      settings.task = NextWordOptions{count, false};
      settings.allowed = allowed;
      const std::vector<std::vector<int32_t>> prompts{{}, {3, 4}, {5}};
      const Results results = decode(scorer, settings, prompts);
      ASSERT_EQ(results.blocks.size(), 3);
      for (size_t i = 0; i < prompts.size(); ++i) {
        EXPECT_EQ(results.blocks[i].next, expected(scorer, prompts[i], static_cast<size_t>(count), allowed));
      }
    }
  }
}

TEST(NextWords, CanLeaveOutTheWordsOfThePrompt) {
  const ScriptedScorer scorer(random_shape(30, 5, 4, 1), Tables::smooth, 1);
  DecoderSettings settings;
  settings.task = NextWordOptions{30, true};
  const std::vector<int32_t> prompt{9, 2, 9, 21};
  const auto unseen = [&](int32_t word) {
    return std::find(prompt.begin(), prompt.end(), word) == prompt.end();
  };
  const Results results = decode(scorer, settings, {prompt, {}, prompt});
  EXPECT_EQ(results.blocks[0].next, expected(scorer, prompt, 30, unseen));
  EXPECT_EQ(results.blocks[1].next.size(), 30);  // nothing of another input's prompt is left out
  EXPECT_EQ(results.blocks[2].next, results.blocks[0].next);
}

TEST(NextWords, NoneMayFit) {
  const ScriptedScorer scorer(random_shape(30, 5, 4, 2), Tables::smooth, 2);
  DecoderSettings settings;
  settings.task = NextWordOptions{5, false};
  settings.allowed = [](int32_t) { return false; };
  EXPECT_TRUE(decode(scorer, settings, {{1}}).blocks.at(0).next.empty());
  settings.task = NextWordOptions{0, false};
  EXPECT_THROW(decode(scorer, settings, {{1}}), UsageError);
}

}  // namespace
}  // namespace hsm::testing
