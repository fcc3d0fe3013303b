#include "eval/calibration.h"

#include <gtest/gtest.h>

#include <cmath>

#include "eval/small_model.h"
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

  static double perplexity(const SmallModel& small, const LogitScales& scales, const TokenFile& tokens,
                           Context context) {
    ThreadPool pool(1);
    const ScaledWeights scaled(small.oracle.shape(), small.oracle.layout(), small.oracle.weight_view(),
                               scales);
    const InferenceModel model(small.oracle.shape(), small.oracle.layout(), scaled.view());
    return score_corpus(model, small.vocabulary, tokens, context, pool).perplexity();
  }

  static Calibration calibrate_small(const SmallModel& small, const TokenFile& tokens, Context context) {
    ThreadPool pool(2);
    return calibrate(small.oracle.shape(), small.oracle.layout(), small.oracle.weight_view(),
                     small.vocabulary, tokens, context, pool);
  }
};

TEST_F(CalibrationTest, NoOtherScalesMakeTheTextMoreProbable) {
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const TokenFile tokens = write_tokens(small.random_text({5, 0, 9, 30, 2, 17, 4, 4, 11, 40}, 3));
  for (const Context context : {Context::stream, Context::sentence}) {
    const Calibration found = calibrate_small(small, tokens, context);
    EXPECT_NEAR(perplexity(small, found.scales, tokens, context), found.perplexity, 1e-6 * found.perplexity);
    for (double root = 0.05; root < 3; root *= 1.1) {
      for (double cluster = 0.05; cluster < 3; cluster *= 1.1) {
        EXPECT_GE(perplexity(small, {root, cluster}, tokens, context), found.perplexity * (1 - 1e-5))
            << root << " " << cluster;
      }
    }
    EXPECT_LT(found.perplexity, perplexity(small, {}, tokens, context));
  }
}

TEST_F(CalibrationTest, TextDrawnFromTheModelFindsItRightAsItIsAndUndoesScales) {
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const TokenFile tokens = write_tokens(drawn_text(small, 30'000));
  const Calibration as_it_is = calibrate_small(small, tokens, Context::stream);
  EXPECT_NEAR(as_it_is.scales.root, 1, 0.05);
  EXPECT_NEAR(as_it_is.scales.cluster, 1, 0.05);
  const ScaledWeights scaled(small.oracle.shape(), small.oracle.layout(), small.oracle.weight_view(),
                             {1.5, 0.8});
  ThreadPool pool(1);
  const Calibration undone = calibrate(small.oracle.shape(), small.oracle.layout(), scaled.view(),
                                       small.vocabulary, tokens, Context::stream, pool);
  EXPECT_NEAR(undone.scales.root * 1.5, as_it_is.scales.root, 0.004);
  EXPECT_NEAR(undone.scales.cluster * 0.8, as_it_is.scales.cluster, 0.004);
  EXPECT_NEAR(undone.perplexity, as_it_is.perplexity, 1e-5 * as_it_is.perplexity);
}

TEST_F(CalibrationTest, ScaledWeightsScaleTheLogits) {
  SampleModel sample = usual_sample();
  sample.tied = false;
  const SmallModel small(sample);
  const ScaledWeights scaled(small.oracle.shape(), small.oracle.layout(), small.oracle.weight_view(),
                             {2, 0.5});
  const InferenceModel model(small.oracle.shape(), small.oracle.layout(), scaled.view());
  const auto width = static_cast<size_t>(small.oracle.shape().head_dim());
  std::vector<float> head(width);
  for (size_t i = 0; i < width; ++i) head[i] = 0.1F * static_cast<float>(i) - 0.4F;
  // Differences of log-probabilities are differences of logits.
  const auto compare = [](const std::vector<float>& plain, const std::vector<float>& other, double factor) {
    for (size_t i = 1; i < plain.size(); ++i) {
      EXPECT_NEAR(other[i] - other[0], factor * (plain[i] - plain[0]), 1e-5);
    }
  };
  const HeadLayout& layout = small.oracle.layout();
  std::vector<float> plain(static_cast<size_t>(layout.shortlist() + layout.clusters()));
  std::vector<float> other(plain.size());
  small.model.root_log_probs(head.data(), 1, plain.data());
  model.root_log_probs(head.data(), 1, other.data());
  compare(plain, other, 2);
  const float* input = head.data();
  for (int64_t c = 0; c < layout.clusters(); ++c) {
    const auto first = layout.cluster_offsets[static_cast<size_t>(c)];
    const auto last = layout.cluster_offsets[static_cast<size_t>(c) + 1];
    plain.resize(static_cast<size_t>(last - first));
    other.resize(plain.size());
    small.model.leaf_log_probs(c, {&input, 1}, plain.data());
    model.leaf_log_probs(c, {&input, 1}, other.data());
    compare(plain, other, 0.5);
  }
}

TEST_F(CalibrationTest, AModelWithoutClustersOfSeveralWordsKeepsTheirScale) {
  const SmallModel small({"flat", Cell::gru, {7}, 5, false, 9, {1}});
  const TokenFile tokens = write_tokens(small.random_text({12, 30, 25}, 5));
  const Calibration found = calibrate_small(small, tokens, Context::stream);
  EXPECT_EQ(found.scales.cluster, 1);
  EXPECT_NE(found.scales.root, 1);
}

}  // namespace
}  // namespace hsm
