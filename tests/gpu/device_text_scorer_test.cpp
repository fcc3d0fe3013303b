// Text scored by LibTorch's layers and the device's kernels, in host memory, against the scorer of the CPU.
#include "gpu/engine/device_text_scorer.h"

#include <gtest/gtest.h>

#include <cmath>

#include "base/error.h"
#include "eval/token_scorer.h"
#include "gpu/engines.h"
#include "kernels/device/host_kernels.h"

namespace hsm::test {
namespace {

constexpr int32_t kEnd = 0;

class DeviceScoring : public testing::TestWithParam<EngineCase> {
 protected:
  DeviceScoring() {
    for (int64_t i = 0; i < 60; ++i) words_.push_back(static_cast<int32_t>((i * 17 + i / 7) % kEngineWords));
    expected_.resize(words_.size());
    scores_.resize(words_.size(), {1, 1});
  }
  void expect_same_scores() const {
    for (size_t i = 0; i < words_.size(); ++i) {
      EXPECT_NEAR(scores_[i].root, expected_[i].root, 2e-5) << i;
      EXPECT_NEAR(scores_[i].leaf, expected_[i].leaf, 2e-5) << i;
    }
  }

  const Config config_ = GetParam().config();
  const HeadLayout layout_ = engine_layout();
  ThreadPool pool_{1};
  std::unique_ptr<TrainingEngine> engine_ = cpu_engine(config_, pool_);
  std::unique_ptr<TextScorer> cpu_ = engine_->make_scorer(kEnd, {});
  std::unique_ptr<TextScorer> device_ =
      make_device_text_scorer(engine_->shape(), layout_, engine_->weights(), at::kCPU,
                              std::make_shared<HostKernels>(kernels::device::ElementType::f32), kEnd);
  std::vector<int32_t> words_;
  std::vector<TokenScore> expected_;
  std::vector<TokenScore> scores_;
};

TEST_P(DeviceScoring, ScoresAStreamAsTheCpuDoes) {
  StreamState state = cpu_->start();
  cpu_->score_stream(words_, state, expected_);
  StreamState device_state = device_->start();
  // In two calls: the state is carried.
  device_->score_stream(std::span(words_).first(23), device_state, std::span(scores_).first(23));
  device_->score_stream(std::span(words_).subspan(23), device_state, std::span(scores_).subspan(23));
  expect_same_scores();
  EXPECT_EQ(device_state.last, state.last);
  for (size_t i = 0; i < state.state.size(); ++i) EXPECT_NEAR(device_state.state[i], state.state[i], 1e-5);
}

TEST_P(DeviceScoring, ScoresSentencesAsTheCpuDoes) {
  const std::vector<int64_t> lengths{1, 12, 0, 5, 5, 20, 17};
  cpu_->score_sentences(words_, lengths, expected_);
  device_->score_sentences(words_, lengths, scores_);
  expect_same_scores();
}

TEST_P(DeviceScoring, RefusesAWordThatIsNotInTheVocabulary) {
  words_[30] = kEngineWords;
  StreamState state = device_->start();
  EXPECT_THROW(device_->score_stream(words_, state, scores_), DataError);
}

TEST_P(DeviceScoring, ValidatesWithTheEnginesOwnWeights) {
  const auto engine = device_engine(config_, pool_);
  train_step(*engine, 0);
  const InferenceModel model(engine->shape(), engine->layout(), engine->weights());
  TokenScorer(model, kEnd, pool_).score_sentences(words_, std::vector<int64_t>{25, 35}, expected_);
  engine->make_scorer(kEnd, {})->score_sentences(words_, std::vector<int64_t>{25, 35}, scores_);
  expect_same_scores();
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceScoring,
                         testing::Values(EngineCase{"lstm", [](Config&) {}},
                                         EngineCase{"gru", [](Config& config) { config.model.cell = "gru"; }},
                                         EngineCase{
                                             "tied_with_projection",
                                             [](Config& config) { config.model.tie_embeddings = true; }}),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace hsm::test
