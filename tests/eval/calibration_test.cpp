#include "eval/calibration.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "eval/small_model.h"
#include "eval/token_scorer.h"
#include "text/fixture.h"

namespace hsm {
namespace {

class CalibrationTest : public TextTest {
 protected:
  TokenFile write_tokens(const std::vector<int32_t>& ids) {
    TokenFileWriter writer(path("tokens"));
    for (const int32_t id : ids) writer.add(id);
    writer.commit(1, 0, 0);
    return TokenFile(path("tokens"));
  }

  // A stream of words, each drawn with the probability that the model gives it after those before.
  static std::vector<int32_t> drawn_text(const SmallModel& small, size_t size) {
    const HeadLayout& layout = small.oracle.layout();
    const CounterRandom random(7, Purpose::sampling);
    std::vector<float> state(static_cast<size_t>(small.oracle.shape().state_size()));
    std::vector<float> head(static_cast<size_t>(small.oracle.shape().head_dim()));
    std::vector<float> scratch(static_cast<size_t>(small.model.run_scratch(1, 1)));
    std::vector<float> log_probs(static_cast<size_t>(layout.words() + layout.clusters()));
    const auto draw = [&](int64_t choices, uint64_t at) {
      double left = random.uniform(at, 0);
      int64_t choice = 0;
      while (choice + 1 < choices && left >= std::exp(log_probs[static_cast<size_t>(choice)])) {
        left -= std::exp(log_probs[static_cast<size_t>(choice++)]);
      }
      return choice;
    };
    std::vector<int32_t> text;
    for (int32_t last = kEnd; text.size() < size || last != kEnd; text.push_back(last)) {
      small.model.run({&last, 1}, 1, 1, state.data(), head.data(), scratch.data());
      small.model.root_log_probs(head.data(), 1, log_probs.data());
      int64_t row = draw(layout.shortlist() + layout.clusters(), 2 * text.size());
      if (const int64_t cluster = row - layout.shortlist(); cluster >= 0) {
        const float* input = head.data();
        small.model.leaf_log_probs(cluster, {&input, 1}, log_probs.data());
        const auto c = static_cast<size_t>(cluster);
        const int64_t first = layout.cluster_offsets[c];
        row = first + draw(layout.cluster_offsets[c + 1] - first, 2 * text.size() + 1);
      }
      last = layout.word_of_row[static_cast<size_t>(row)];
    }
    return text;
  }

  std::unique_ptr<TextScorer> scorer(const SmallModel& small, const LogitScales& scales) {
    const ModelShape& shape = small.oracle.shape();
    const HeadLayout& layout = small.oracle.layout();
    return make_cpu_scorer(shape, layout, ScaledWeights(shape, layout, small.oracle.weight_view(), scales),
                           kEnd, pool_);
  }
  double perplexity(const SmallModel& small, const LogitScales& scales, const TokenFile& tokens,
                    Context context) {
    return score_corpus(*scorer(small, scales), small.vocabulary, tokens, context).perplexity();
  }
  // Of the model with scales `before`, which further scales are looked for on top of.
  LogitScales found_scales(const SmallModel& small, const TokenFile& tokens, Context context,
                           LogitScales before = {}) {
    const auto make_scorer = [&](const LogitScales& scales) {
      return scorer(small, {scales.root * before.root, scales.cluster * before.cluster});
    };
    return calibrate(make_scorer, small.vocabulary, tokens, context);
  }

  ThreadPool pool_{2};
};

TEST_F(CalibrationTest, NoOtherScalesAreMoreProbableAfterTheText) {
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const TokenFile tokens = write_tokens(small.random_text({5, 0, 9, 30, 2, 17, 4, 4, 11, 40}, 3));
  for (const Context context : {Context::stream, Context::sentence}) {
    const LogitScales found = found_scales(small, tokens, context);
    const auto cost = [&](const LogitScales& scales) {
      const double words = static_cast<double>(tokens.size());
      const double deviations = std::hypot(std::log(scales.root), std::log(scales.cluster)) / kScaleSpread;
      return words * std::log(perplexity(small, scales, tokens, context)) + deviations * deviations / 2;
    };
    const double least = cost(found);
    for (int root = -30; root < 12; ++root) {
      for (int cluster = -30; cluster < 12; ++cluster) {
        const LogitScales scales{std::pow(1.1F, static_cast<float>(root)),
                                 std::pow(1.1F, static_cast<float>(cluster))};
        EXPECT_GE(cost(scales), least * (1 - 1e-3)) << scales.root << " " << scales.cluster;
      }
    }
    EXPECT_LT(perplexity(small, found, tokens, context), perplexity(small, {}, tokens, context));
  }
}

TEST_F(CalibrationTest, TextDrawnFromTheModelFindsItRightAsItIsAndUndoesScales) {
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const TokenFile tokens = write_tokens(drawn_text(small, 30'000));
  const LogitScales as_it_is = found_scales(small, tokens, Context::stream);
  EXPECT_NEAR(as_it_is.root, 1, 0.1);
  EXPECT_NEAR(as_it_is.cluster, 1, 0.1);
  // Not quite: either search is held near 1, by as much as the text says little.
  const LogitScales undone = found_scales(small, tokens, Context::stream, {1.5, 0.8});
  EXPECT_NEAR(undone.root * 1.5, as_it_is.root, 0.04);
  EXPECT_NEAR(undone.cluster * 0.8, as_it_is.cluster, 0.04);
}

TEST_F(CalibrationTest, ReadsTheFirstWordsOfALineThatNeverEnds) {
  const SmallModel small({"tiny", Cell::rnn_tanh, {3}, 3, false, 2, {4, 5}});
  for (const Context context : {Context::stream, Context::sentence}) {
    const std::vector<int32_t> text = small.random_text({40'000}, 9);
    const LogitScales found = found_scales(small, write_tokens(text), context);
    const std::vector<int32_t> first(text.begin(), text.begin() + 16'384);
    EXPECT_EQ(found, found_scales(small, write_tokens(first), context));
    EXPECT_NE(found, LogitScales{});
  }
}

TEST_F(CalibrationTest, AFewWordsDoNotMakeScalesAsLargeAsTheyLike) {
  // The likeliest word of some cluster, after which the text ends: the larger the scale, the better.
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const HeadLayout& layout = small.oracle.layout();
  const int64_t cluster = 1;
  std::vector<float> state(static_cast<size_t>(small.oracle.shape().state_size()));
  std::vector<float> head(static_cast<size_t>(small.oracle.shape().head_dim()));
  std::vector<float> scratch(static_cast<size_t>(small.model.run_scratch(1, 1)));
  small.model.run({&kEnd, 1}, 1, 1, state.data(), head.data(), scratch.data());
  const auto first = layout.cluster_offsets[cluster];
  std::vector<float> log_probs(static_cast<size_t>(layout.cluster_offsets[cluster + 1] - first));
  const float* input = head.data();
  small.model.leaf_log_probs(cluster, {&input, 1}, log_probs.data());
  const auto likeliest = std::max_element(log_probs.begin(), log_probs.end()) - log_probs.begin();
  const int32_t word = layout.word_of_row[static_cast<size_t>(first + likeliest)];
  const LogitScales found = found_scales(small, write_tokens({word, kEnd}), Context::sentence);
  EXPECT_GT(found.cluster, 1);
  EXPECT_LT(found.cluster, 1.5);
}

TEST_F(CalibrationTest, AModelWithoutClustersOfSeveralWordsKeepsTheirScale) {
  const SmallModel small({"flat", Cell::gru, {7}, 5, false, 9, {1}});
  const TokenFile tokens = write_tokens(small.random_text({12, 30, 25}, 5));
  const LogitScales found = found_scales(small, tokens, Context::stream);
  EXPECT_EQ(found.cluster, 1);
  EXPECT_NE(found.root, 1);
}

}  // namespace
}  // namespace hsm
