#include "eval/token_scorer.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>

#include "base/error.h"
#include "eval/small_model.h"

namespace hsm {
namespace {

using Scores = std::vector<TokenScore>;

Scores stream_scores(const SmallModel& small, std::span<const int32_t> words, int threads,
                     size_t piece = SIZE_MAX) {
  ThreadPool pool(threads);
  TokenScorer scorer(small.model, small.vocabulary.end_of_sentence(), pool);
  StreamState state = scorer.start();
  Scores scores(words.size());
  for (size_t first = 0; first < words.size(); first += std::min(piece, words.size() - first)) {
    const size_t count = std::min(piece, words.size() - first);
    scorer.score_stream(words.subspan(first, count), state, std::span(scores).subspan(first, count));
  }
  return scores;
}

Scores sentence_scores(const SmallModel& small, std::span<const int32_t> words,
                       std::span<const int64_t> lengths, int threads) {
  ThreadPool pool(threads);
  TokenScorer scorer(small.model, small.vocabulary.end_of_sentence(), pool);
  Scores scores(words.size());
  scorer.score_sentences(words, lengths, scores);
  return scores;
}

/// Both parts as bits, so that equality means equality.
std::vector<std::pair<uint32_t, uint32_t>> bits(std::span<const TokenScore> scores) {
  std::vector<std::pair<uint32_t, uint32_t>> result;
  for (const TokenScore& score : scores) {
    result.emplace_back(std::bit_cast<uint32_t>(score.root), std::bit_cast<uint32_t>(score.leaf));
  }
  return result;
}

std::vector<int64_t> with_end(std::vector<int64_t> lengths) {
  for (int64_t& length : lengths) ++length;
  return lengths;
}

class EveryModel : public ::testing::TestWithParam<SampleModel> {
 protected:
  const SmallModel small_{GetParam()};
};

INSTANTIATE_TEST_SUITE_P(Samples, EveryModel, ::testing::ValuesIn(sample_models()),
                         [](const auto& tested) { return tested.param.name; });

TEST_P(EveryModel, ProbabilitiesOfAllNextWordsSumToOne) {
  for (const size_t history : {0, 1, 6}) {
    std::vector<int32_t> prefix = small_.random_text({6}, 7);
    prefix.resize(history);
    std::vector<int32_t> words;
    for (int32_t next = 0; next < small_.vocabulary.size(); ++next) {
      words.insert(words.end(), prefix.begin(), prefix.end());
      words.push_back(next);
    }
    const size_t length = history + 1;
    const std::vector<int64_t> lengths(words.size() / length, static_cast<int64_t>(length));
    const Scores side_by_side = sentence_scores(small_, words, lengths, 2);
    double sum = 0;
    double sum_of_streams = 0;
    for (size_t first = 0; first < words.size(); first += length) {
      sum += std::exp(side_by_side[first + history].log_prob());
      const Scores alone = stream_scores(small_, std::span(words).subspan(first, length), 1);
      sum_of_streams += std::exp(alone.back().log_prob());
    }
    EXPECT_NEAR(sum, 1, 1e-5) << "after " << history << " words";
    EXPECT_NEAR(sum_of_streams, 1, 1e-5) << "after " << history << " words";
  }
}

TEST_P(EveryModel, ScoresAreThoseOfTheFormulaInDoublePrecision) {
  const std::vector<int32_t> text = small_.random_text({4, 0, 9}, 23);
  const Scores scores = stream_scores(small_, text, 2);
  Doubles state = small_.oracle.zero_state();
  int32_t last = kEnd;
  for (size_t place = 0; place < text.size(); ++place) {
    const Doubles log_probs = small_.oracle.log_probs(small_.oracle.step(last, state));
    last = text[place];
    const double expected = log_probs[static_cast<size_t>(last)];
    EXPECT_NEAR(scores[place].log_prob(), expected, 1e-5 * (1 - expected)) << "word " << place;
  }
}

TEST_P(EveryModel, ASentenceAloneHasTheBitsItHasInACrowd) {
  // More sentences than run side by side, lengths mixed, empty ones among them.
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 97; ++i) lengths.push_back(i * 29 % 23);
  const std::vector<int32_t> text = small_.random_text(lengths, 3);
  lengths = with_end(lengths);
  const Scores crowd = sentence_scores(small_, text, lengths, 1);
  size_t first = 0;
  for (const int64_t length : lengths) {
    const auto sentence = std::span(text).subspan(first, static_cast<size_t>(length));
    const std::vector<int64_t> only{length};
    const Scores alone = sentence_scores(small_, sentence, only, 1);
    ASSERT_EQ(bits(alone), bits(std::span(crowd).subspan(first, sentence.size()))) << "at word " << first;
    ASSERT_EQ(bits(alone), bits(stream_scores(small_, sentence, 1))) << "at word " << first;
    first += sentence.size();
  }
}

TEST_P(EveryModel, SentencesHaveTheSameBitsForAnyNumberOfThreads) {
  std::vector<int64_t> lengths;
  for (int64_t i = 0; i < 101; ++i) lengths.push_back(i * i % 41);
  const std::vector<int32_t> text = small_.random_text(lengths, 5);
  const auto expected = bits(sentence_scores(small_, text, with_end(lengths), 1));
  for (const int threads : {2, 3}) {
    EXPECT_EQ(bits(sentence_scores(small_, text, with_end(lengths), threads)), expected) << threads;
  }
}

TEST_P(EveryModel, AStreamHasTheSameBitsHoweverItIsCutAndForAnyNumberOfThreads) {
  const std::vector<int32_t> text = small_.random_text({1000, 0, 0, 37, 3, 1200, 1}, 11);
  const auto expected = bits(stream_scores(small_, text, 1));
  for (const int threads : {2, 3}) EXPECT_EQ(bits(stream_scores(small_, text, threads)), expected) << threads;
  for (const size_t piece : {1UL, 63UL, 64UL, 1025UL}) {
    EXPECT_EQ(bits(stream_scores(small_, text, 2, piece)), expected) << piece;
  }
}

TEST_P(EveryModel, AVeryLongSentenceHasTheSameBitsAsAStream) {
  const std::vector<int32_t> text = small_.random_text({10000, 3}, 13);
  const std::vector<int64_t> lengths{10001, 4};
  const auto expected = bits(stream_scores(small_, std::span(text).first(10001), 1));
  for (const int threads : {1, 2}) {
    const Scores scores = sentence_scores(small_, text, lengths, threads);
    EXPECT_EQ(bits(std::span(scores).first(10001)), expected) << threads;
  }
}

TEST(TokenScorer, AStreamRemembersWhatASentenceForgets) {
  const SmallModel small(usual_sample());
  const std::vector<int32_t> text = small.random_text({4, 4}, 17);
  const std::vector<int64_t> lengths{5, 5};
  const Scores stream = stream_scores(small, text, 1);
  const Scores sentences = sentence_scores(small, text, lengths, 1);
  EXPECT_EQ(bits(std::span(stream).first(5)), bits(std::span(sentences).first(5)));
  EXPECT_NE(bits(std::span(stream).last(5)), bits(std::span(sentences).last(5)));
}

TEST(TokenScorer, PartsOfAWordSayWhereItLies) {
  const SmallModel small(usual_sample(Cell::gru));
  const std::vector<int32_t> words = small.random_text({400}, 19);
  const Scores scores = stream_scores(small, words, 1);
  for (size_t place = 0; place < words.size(); ++place) {
    const int64_t row = small.oracle.layout().row_of_word[static_cast<size_t>(words[place])];
    const int32_t cluster = small.oracle.layout().cluster_of_row[static_cast<size_t>(row)];
    EXPECT_LT(scores[place].root, 0);
    // Cluster 2 has one word: probability 1 within it.
    if (cluster == kShortlist || cluster == 2) {
      EXPECT_EQ(scores[place].leaf, 0) << words[place];
    } else {
      EXPECT_LT(scores[place].leaf, 0) << words[place];
    }
  }
}

TEST(TokenScorer, WordsThatTheModelLacksAreRefused) {
  const SmallModel small(usual_sample());
  for (const int32_t word : {-1, 31}) {
    const std::vector<int32_t> words{2, word};
    const std::vector<int64_t> lengths{2};
    EXPECT_THROW(stream_scores(small, words, 1), DataError);
    EXPECT_THROW(sentence_scores(small, words, lengths, 1), DataError);
  }
}

TEST(TokenScorer, NothingIsScoredInNoText) {
  const SmallModel small(usual_sample());
  EXPECT_TRUE(stream_scores(small, {}, 2).empty());
  EXPECT_TRUE(sentence_scores(small, {}, {}, 2).empty());
}

}  // namespace
}  // namespace hsm
