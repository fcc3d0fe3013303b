#include "eval/prefix_scorer.h"

#include <gtest/gtest.h>

#include <set>

#include "eval/small_model.h"
#include "eval/token_scorer.h"

namespace hsm {
namespace {

using Sentences = std::vector<std::vector<int32_t>>;

/// Sentences over few words, so that many begin alike; `</s>` ends each.
Sentences alike_sentences(size_t count, uint64_t seed) {
  const CounterRandom random(seed, Purpose::sampling);
  Sentences sentences(count);
  uint64_t draw = 0;
  for (auto& sentence : sentences) {
    for (uint64_t i = random.bits(0, draw++) % 12; i > 0; --i) {
      sentence.push_back(1 + static_cast<int32_t>(random.bits(0, draw++) % 3) * 9);
    }
    sentence.push_back(kEnd);
  }
  return sentences;
}

std::vector<double> prefix_scores(const SmallModel& small, const Sentences& sentences, int threads,
                                  int64_t* rows = nullptr) {
  ThreadPool pool(threads);
  PrefixScorer scorer(small.model, kEnd, pool);
  const std::vector<std::span<const int32_t>> views(sentences.begin(), sentences.end());
  std::vector<double> log_probs(sentences.size(), 1);
  scorer.score(views, log_probs);
  if (rows != nullptr) *rows = scorer.rows_fed();
  return log_probs;
}

double alone(const SmallModel& small, const std::vector<int32_t>& sentence) {
  ThreadPool pool(1);
  TokenScorer scorer(small.model, kEnd, pool);
  std::vector<TokenScore> scores(sentence.size());
  const std::vector<int64_t> length{static_cast<int64_t>(sentence.size())};
  scorer.score_sentences(sentence, length, scores);
  double sum = 0;
  for (const TokenScore& score : scores) sum += score.log_prob();
  return sum;
}

TEST(PrefixScorer, GivesEachSentenceTheBitsThatItHasAlone) {
  for (const Cell cell : {Cell::lstm, Cell::gru}) {
    const SmallModel small(usual_sample(cell));
    const Sentences sentences = alike_sentences(700, 3);  // more than a block of the head holds
    for (const int threads : {1, 3}) {
      const auto log_probs = prefix_scores(small, sentences, threads);
      for (size_t i = 0; i < sentences.size(); i += threads == 1 ? 1 : 17) {
        ASSERT_EQ(log_probs[i], alone(small, sentences[i])) << "sentence " << i;
      }
    }
  }
}

TEST(PrefixScorer, RunsASharedBeginningOnce) {
  const SmallModel small(usual_sample());
  const Sentences sentences = alike_sentences(30, 5);
  std::set<std::vector<int32_t>> beginnings;
  for (const auto& sentence : sentences) {
    for (size_t length = 0; length < sentence.size(); ++length) {
      beginnings.emplace(sentence.begin(), sentence.begin() + static_cast<int64_t>(length));
    }
  }
  int64_t rows = 0;
  prefix_scores(small, sentences, 1, &rows);
  EXPECT_EQ(rows, static_cast<int64_t>(beginnings.size()));
}

TEST(PrefixScorer, NothingAndEmptySentencesHaveScoresToo) {
  const SmallModel small(usual_sample());
  EXPECT_TRUE(prefix_scores(small, {}, 2).empty());
  const Sentences empty(3, {kEnd});
  for (const double log_prob : prefix_scores(small, empty, 2)) EXPECT_EQ(log_prob, alone(small, {kEnd}));
}

}  // namespace
}  // namespace hsm
