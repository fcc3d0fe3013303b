#include "eval/scoring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "eval/small_model.h"
#include "eval/token_scorer.h"
#include "model/test_directory.h"
#include "text/token_file.h"

namespace hsm {
namespace {

class ScoreCorpus : public ::testing::Test {
 protected:
  TokenFile token_file(std::span<const int32_t> ids) const {
    TokenFileWriter writer(folder_ / "tokens");
    for (const int32_t id : ids) writer.add(id);
    writer.commit(std::count(ids.begin(), ids.end(), kEnd), std::count(ids.begin(), ids.end(), kUnknown), 0);
    return TokenFile(folder_ / "tokens");
  }

  CorpusScore score(const SmallModel& small, std::span<const int32_t> ids, Context context, int threads = 1) {
    ThreadPool pool(threads);
    return score_corpus(small.model, small.vocabulary, token_file(ids), context, pool);
  }

  TestDirectory folder_;
  SmallModel small_{usual_sample()};
};

/// The definition: a stream of words, or one a sentence, added up one by one.
CorpusScore expected_score(const SmallModel& small, std::span<const int32_t> ids, Context context) {
  ThreadPool pool(1);
  TokenScorer scorer(small.model, kEnd, pool);
  StreamState state = scorer.start();
  CorpusScore corpus;
  CorpusScore sentence;
  for (const int32_t id : ids) {
    TokenScore score;
    scorer.score_stream({&id, 1}, state, {&score, 1});
    const double log_prob = static_cast<double>(score.root) + static_cast<double>(score.leaf);
    ++sentence.words;
    sentence.log_prob += log_prob;
    sentence.log_prob_root += static_cast<double>(score.root);
    if (id == kUnknown) {
      ++sentence.oov;
      sentence.log_prob_oov += log_prob;
    }
    if (id != kEnd) continue;
    ++corpus.sentences;
    corpus.words += sentence.words;
    corpus.oov += sentence.oov;
    corpus.log_prob += sentence.log_prob;
    corpus.log_prob_root += sentence.log_prob_root;
    corpus.log_prob_oov += sentence.log_prob_oov;
    sentence = {};
    if (context == Context::sentence) state = scorer.start();
  }
  corpus += sentence;  // where the text ends within one
  return corpus;
}

void expect_same(const CorpusScore& actual, const CorpusScore& expected) {
  EXPECT_EQ(actual.sentences, expected.sentences);
  EXPECT_EQ(actual.words, expected.words);
  EXPECT_EQ(actual.oov, expected.oov);
  EXPECT_EQ(actual.log_prob, expected.log_prob);
  EXPECT_EQ(actual.log_prob_oov, expected.log_prob_oov);
}

TEST_F(ScoreCorpus, AddsUpWordByWordForAnyNumberOfThreads) {
  const std::vector<int32_t> text = small_.random_text({5, 0, 1, 700, 13, 0, 0, 29, 1900, 2}, 1);
  for (const Context context : {Context::stream, Context::sentence}) {
    const CorpusScore expected = expected_score(small_, text, context);
    ASSERT_GT(expected.oov, 10);
    for (const int threads : {1, 2, 3}) expect_same(score(small_, text, context, threads), expected);
  }
}

TEST_F(ScoreCorpus, ContextIsForgottenBetweenSentencesOnlyWhenAsked) {
  const std::vector<int32_t> one_line = small_.random_text({40}, 2);
  expect_same(score(small_, one_line, Context::stream), score(small_, one_line, Context::sentence));
  const std::vector<int32_t> two_lines = small_.random_text({20, 20}, 2);
  EXPECT_NE(score(small_, two_lines, Context::stream).log_prob,
            score(small_, two_lines, Context::sentence).log_prob);
}

TEST_F(ScoreCorpus, LinesLongerThanAWindowAreScoredInPieces) {
  const SmallModel tiny({"tiny", Cell::rnn_tanh, {3}, 3, false, 2, {4, 5}});
  // The second begins within a window and ends beyond the next; the last fills the file's end.
  const std::vector<int32_t> text = tiny.random_text({32767, 90001, 3, 0, 40000}, 3);
  for (const Context context : {Context::stream, Context::sentence}) {
    expect_same(score(tiny, text, context, 2), expected_score(tiny, text, context));
  }
}

TEST_F(ScoreCorpus, ALimitLeavesTheFirstWords) {
  const std::vector<int32_t> ids = small_.random_text({3, 0, 9, 5}, 4);  // sentences end at 4, 5, 15, 21
  const TokenFile tokens = token_file(ids);
  ThreadPool pool(1);
  TokenScorer scorer(small_.model, kEnd, pool);
  for (const Context context : {Context::stream, Context::sentence}) {
    for (const int64_t most : {0, 3, 4, 14, 15, 20, 21, 99}) {
      const CorpusScore score = score_corpus(scorer, small_.vocabulary, tokens, context, most);
      std::vector<int32_t> first(ids.begin(), ids.begin() + std::min<int64_t>(most, 21));
      const CorpusScore expected = expected_score(small_, first, context);
      EXPECT_EQ(score.words, static_cast<int64_t>(first.size()));
      EXPECT_EQ(score.sentences, std::count(first.begin(), first.end(), kEnd));
      EXPECT_DOUBLE_EQ(score.log_prob, expected.log_prob) << most;
      EXPECT_DOUBLE_EQ(score.log_prob_root, expected.log_prob_root) << most;
    }
  }
}

TEST_F(ScoreCorpus, UnknownWordsAreCountedApartInNumeratorAndDenominator) {
  const std::vector<int32_t> text{5, 1, 1, 6, 0, 1, 0};
  const CorpusScore sums = score(small_, text, Context::stream);
  EXPECT_EQ(sums.sentences, 2);
  EXPECT_EQ(sums.words, 7);
  EXPECT_EQ(sums.oov, 3);
  EXPECT_DOUBLE_EQ(sums.perplexity(), std::exp(-sums.log_prob / 7));
  EXPECT_DOUBLE_EQ(sums.perplexity_without_oov(), std::exp(-(sums.log_prob - sums.log_prob_oov) / 4));
  EXPECT_DOUBLE_EQ(sums.perplexity_per_word(), std::exp(-sums.log_prob / 5));

  ThreadPool pool(1);
  TokenScorer scorer(small_.model, kEnd, pool);
  StreamState state = scorer.start();
  std::vector<TokenScore> scores(text.size());
  scorer.score_stream(text, state, scores);
  EXPECT_NEAR(sums.log_prob_oov, scores[1].log_prob() + scores[2].log_prob() + scores[5].log_prob(), 1e-12);
}

TEST_F(ScoreCorpus, BlankLinesAreSentences) {
  const std::vector<int32_t> text{0, 0, 0};
  const CorpusScore sums = score(small_, text, Context::sentence);
  EXPECT_EQ(sums.sentences, 3);
  EXPECT_EQ(sums.words, 3);
  EXPECT_TRUE(std::isfinite(sums.perplexity()));
  EXPECT_TRUE(std::isnan(sums.perplexity_per_word())) << "there is no word to average over";
}

TEST(CorpusScore, PerplexityOfNothingIsUndefinedAndNoneIsInfinite) {
  EXPECT_TRUE(std::isnan(CorpusScore{}.perplexity()));
  EXPECT_TRUE(std::isnan(CorpusScore{}.perplexity_without_oov()));
  CorpusScore hopeless;
  hopeless.words = 1;
  hopeless.log_prob = -1e6;
  EXPECT_EQ(hopeless.perplexity(), std::numeric_limits<double>::max());
}

}  // namespace
}  // namespace hsm
