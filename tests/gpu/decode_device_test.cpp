// The device's decoding against the CPU's: in host memory, with the device's kernels as host_decode_kernels.h
// has them, or on the GPU that HSM_TEST_DEVICE asks for.
#include "gpu/engine/decode_device.h"

#include <gmock/gmock.h>

#include <cmath>
#include <filesystem>
#include <limits>

#include "base/error.h"
#include "base/memory.h"
#include "decode/model_scorer.h"
#include "decode/run_decoder.h"
#include "gpu/engines.h"
#include "gpu/gpu_module.h"
#include "kernels/device/host_decode_kernels.h"

namespace hsm::test {
namespace {

using hsm::testing::PromptsInMemory;
using hsm::testing::Results;

constexpr int32_t kEnd = 0;
constexpr double kTolerance = 1e-5;

std::unique_ptr<DecodeDevice> decode_device(const ModelShape& shape, const HeadLayout& layout,
                                            const WeightView& weights) {
  if (const std::optional<int> gpu = test_device()) {
    const auto library = std::filesystem::path(HSM_PROGRAM).parent_path() / "libhsm_cuda.so";
    return load_gpu_module(library).make_decode_device(shape, layout, weights, kEnd, {*gpu, 0});
  }
  return make_decode_device(shape, layout, weights, kEnd, at::kCPU, std::make_shared<HostDecodeKernels>());
}

class DeviceDecoding : public ::testing::TestWithParam<EngineCase> {
 protected:
  /// Nine prompts, of 0 to 3 words and, so that they hold many of the best next words, of 14 and more.
  static std::vector<std::vector<int32_t>> prompts() {
    std::vector<std::vector<int32_t>> prompts;
    for (int32_t i = 0; i < 9; ++i) {
      auto& prompt = prompts.emplace_back();
      for (int32_t k = 0; k < i % 4 + (i < 6 ? 0 : 14); ++k)
        prompt.push_back((7 * i + 11 * k + 3) % static_cast<int32_t>(kEngineWords));
    }
    return prompts;
  }
  static Results run(const DecodeDevice& device, const DecoderSettings& settings) {
    Decoder decoder(device, settings);
    PromptsInMemory feed(prompts());
    Results results;
    decoder.run(feed, results);
    return results;
  }
  /// Runs both and compares all that comes out.
  void compare(const DecoderSettings& settings, const std::string& what) {
    const Results want = run(cpu_, settings);
    const Results got = run(*device_, settings);
    ASSERT_EQ(got.blocks.size(), want.blocks.size()) << what;
    for (size_t b = 0; b < want.blocks.size(); ++b) {
      const std::string place = what + ", input " + std::to_string(b);
      const auto& expected = want.blocks[b];
      const auto& block = got.blocks[b];
      ASSERT_EQ(block.outputs.size(), expected.outputs.size()) << place;
      for (size_t i = 0; i < expected.outputs.size(); ++i) {
        EXPECT_EQ(block.outputs[i].tokens, expected.outputs[i].tokens) << place << ", output " << i;
        EXPECT_EQ(block.outputs[i].finished, expected.outputs[i].finished) << place;
        EXPECT_NEAR(block.outputs[i].log_prob, expected.outputs[i].log_prob, kTolerance) << place;
        EXPECT_NEAR(block.outputs[i].score, expected.outputs[i].score, kTolerance) << place;
        ASSERT_EQ(block.token_log_probs[i].size(), expected.token_log_probs[i].size()) << place;
        for (size_t t = 0; t < expected.token_log_probs[i].size(); ++t)
          EXPECT_NEAR(block.token_log_probs[i][t], expected.token_log_probs[i][t], kTolerance) << place;
      }
      ASSERT_EQ(block.next.size(), expected.next.size()) << place;
      for (size_t i = 0; i < expected.next.size(); ++i) {
        EXPECT_EQ(block.next[i].word, expected.next[i].word) << place << ", word " << i;
        EXPECT_NEAR(block.next[i].log_prob, expected.next[i].log_prob, kTolerance) << place;
      }
    }
  }

  const Config config_ = GetParam().config();
  const HeadLayout layout_ = engine_layout();
  ThreadPool pool_{1};
  std::unique_ptr<TrainingEngine> engine_ = cpu_engine(config_, pool_);
  const InferenceModel model_{engine_->shape(), layout_, engine_->weights()};
  const ModelScorer scorer_{model_, kEnd};
  const CpuDecodeDevice cpu_{scorer_, pool_};
  const std::unique_ptr<DecodeDevice> device_ = decode_device(engine_->shape(), layout_, engine_->weights());
};

BeamOptions beam(int64_t width, int64_t nbest, int64_t max_length) {
  BeamOptions options;
  options.beam = width;
  options.nbest = nbest;
  options.length.max_length = max_length;
  return options;
}

TEST_P(DeviceDecoding, SearchesAsTheCpuDoes) {
  for (const int64_t width : {1, 2, 7, 16, 40}) {  // 40: more than there are words
    for (const int64_t batch : {1, 4}) {
      DecoderSettings settings;
      settings.task = beam(width, std::min<int64_t>(width, 5), 12);
      settings.batch = batch;
      compare(settings, "beam " + std::to_string(width) + ", batch " + std::to_string(batch));
    }
  }
}

TEST_P(DeviceDecoding, ScoresTheTokensOfItsOutputs) {
  DecoderSettings settings;
  BeamOptions options = beam(6, 6, 10);
  options.token_scores = true;
  settings.task = options;
  compare(settings, "token scores");
}

TEST_P(DeviceDecoding, KeepsToLengthsPenaltyAndWords) {
  BeamOptions options = beam(5, 3, 9);
  options.length.min_length = 3;
  DecoderSettings settings;
  for (const double penalty : {-0.5, 0.0, 0.8}) {
    options.length.length_penalty = penalty;
    settings.task = options;
    compare(settings, "penalty " + std::to_string(penalty));
  }
  settings.allowed = [](int32_t word) { return word % 5 != 3; };
  compare(settings, "suppressed words");
  settings.allowed = [](int32_t word) { return word != kEnd; };
  compare(settings, "no end symbol");
  settings.allowed = [](int32_t word) { return word == 4; };
  compare(settings, "one word");
  settings.allowed = [](int32_t) { return false; };
  compare(settings, "no word");
}

TEST_P(DeviceDecoding, DoesNotDependOnTheBudget) {
  DecoderSettings settings;
  settings.task = beam(7, 7, 8);
  const Results ample = run(*device_, settings);
  for (const int64_t expansions : {1, 2, 5, 100}) {
    settings.expansions = expansions;
    EXPECT_EQ(run(*device_, settings).blocks, ample.blocks) << expansions << " expansions at a time";
  }
  for (const int64_t batch : {1, 3, 8}) {
    settings.batch = batch;
    EXPECT_EQ(run(*device_, settings).blocks, ample.blocks) << "batch " << batch;
  }
}

TEST_P(DeviceDecoding, ListsNextWordsAsTheCpuDoes) {
  for (const int64_t count : {1, 6, 1000}) {
    for (const bool exclude : {false, true}) {
      DecoderSettings settings;
      settings.task = NextWordOptions{count, exclude};
      compare(settings, "next " + std::to_string(count));
      settings.allowed = [](int32_t word) { return word % 3 != 1; };  // as --prefix has it
      compare(settings, "some of the next " + std::to_string(count));
    }
  }
}

TEST_P(DeviceDecoding, DrawsTheSameSamples) {
  for (const double temperature : {0.7, 1.0, 1.5}) {
    DecoderSettings settings;
    SamplingOptions options;
    options.samples = 6;
    options.temperature = temperature;
    options.seed = 9;
    options.length.max_length = 8;
    settings.task = options;
    compare(settings, "temperature " + std::to_string(temperature));
    settings.allowed = [](int32_t word) { return word % 4 != 2; };
    settings.expansions = 4;
    options.length.min_length = 2;
    settings.task = options;
    compare(settings, "suppressed words, temperature " + std::to_string(temperature));
  }
}

TEST_P(DeviceDecoding, DrawsAmongTheBestWords) {
  for (const auto& [top_k, top_p] : {std::pair<int64_t, double>{4, 1}, {0, 0.8}, {9, 0.7}, {1, 1}}) {
    DecoderSettings settings;
    SamplingOptions options;
    options.samples = 4;
    options.temperature = 1.3;
    options.top_k = top_k;
    options.top_p = top_p;
    options.length.max_length = 8;
    options.length.min_length = 1;
    settings.task = options;
    compare(settings, "top " + std::to_string(top_k) + ", " + std::to_string(top_p));
    settings.allowed = [](int32_t word) { return word % 4 != 2; };
    compare(settings, "suppressed words, top " + std::to_string(top_k) + ", " + std::to_string(top_p));
  }
}

TEST_P(DeviceDecoding, FindsTheSamePathsThroughNetworks) {
  class Networks : public PromptFeed {
   public:
    Status take(Prompt& prompt, bool /*wait*/) override {
      if (next_ == 3) return Status::end;
      prompt = {};
      prompt.number = next_;
      prompt.tokens = {static_cast<int32_t>(3 + next_++)};
      for (int32_t position = 0; position < 4; ++position) {
        auto& alternatives = prompt.network.positions.emplace_back();
        for (int32_t a = 0; a < 3; ++a) {
          Network::Alternative alternative;
          for (int32_t k = 0; k < (position + a) % 3; ++k)
            alternative.tokens.push_back((position * 5 + a * 7 + k * 3 + 1) %
                                         static_cast<int32_t>(kEngineWords));
          alternative.score = -0.3 * a;
          alternatives.push_back(alternative);
        }
      }
      return Status::ready;
    }

   private:
    int64_t next_ = 0;
  };
  DecoderSettings settings;
  NetworkOptions options;
  options.beam = 4;
  options.nbest = 4;
  settings.task = options;
  Results want;
  Results got;
  for (const auto& [device, results] :
       {std::pair<const DecodeDevice*, Results*>{&cpu_, &want}, {device_.get(), &got}}) {
    Decoder decoder(*device, settings);
    Networks feed;
    decoder.run(feed, *results);
  }
  ASSERT_EQ(got.blocks.size(), want.blocks.size());
  for (size_t b = 0; b < want.blocks.size(); ++b) {
    ASSERT_EQ(got.blocks[b].paths.size(), want.blocks[b].paths.size());
    for (size_t i = 0; i < want.blocks[b].paths.size(); ++i) {
      EXPECT_EQ(got.blocks[b].paths[i].choices, want.blocks[b].paths[i].choices);
      EXPECT_NEAR(got.blocks[b].paths[i].score, want.blocks[b].paths[i].score, kTolerance);
    }
  }
}

TEST_P(DeviceDecoding, CountsExpansions) {
  DecoderSettings settings;
  settings.task = NextWordOptions{1000, false};  // every word: every cluster is expanded
  Decoder decoder(*device_, settings);
  PromptsInMemory feed(prompts());
  Results results;
  decoder.run(feed, results);
  EXPECT_EQ(decoder.stats().expansions, decoder.stats().possible_expansions);
  EXPECT_EQ(decoder.stats().expansions, 9 * 4);
}

TEST_P(DeviceDecoding, RefusesAWordThatIsNotInTheVocabularyAndWeightsThatAreNotNumbers) {
  DecoderSettings settings;
  settings.task = beam(2, 1, 4);
  Decoder decoder(*device_, settings);
  Results results;
  PromptsInMemory feed({{kEngineWords, 1}});
  EXPECT_THROW(decoder.run(feed, results), DataError);

  WeightView weights = engine_->weights();
  std::vector<float> broken(static_cast<size_t>(layout_.clusters() * engine_->shape().head_dim()),
                            std::numeric_limits<float>::quiet_NaN());
  weights.tensors[weights.tensors.size() - 2] = broken.data();  // head.cluster.weight
  const auto device = decode_device(engine_->shape(), layout_, weights);
  SamplingOptions sampling;
  sampling.length.max_length = 4;
  for (const auto& task : std::initializer_list<decltype(settings.task)>{beam(2, 1, 4), sampling}) {
    settings.task = task;
    EXPECT_THROW(run(*device, settings), DataError);
  }
}

INSTANTIATE_TEST_SUITE_P(
    Models, DeviceDecoding,
    ::testing::Values(EngineCase{"lstm", [](Config&) {}},
                      EngineCase{"gru", [](Config& config) { config.model.cell = "gru"; }},
                      EngineCase{"rnn_tanh", [](Config& config) { config.model.cell = "rnn_tanh"; }},
                      EngineCase{"rnn_relu", [](Config& config) { config.model.cell = "rnn_relu"; }},
                      EngineCase{"tied_with_projection",
                                 [](Config& config) { config.model.tie_embeddings = true; }}),
    [](const auto& model) { return model.param.name; });

class DeviceDecodingMemory : public ::testing::Test {
 protected:
  const Config config_ = EngineCase{"", [](Config&) {}}.config();
  const HeadLayout layout_ = engine_layout();
  ThreadPool pool_{1};
  std::unique_ptr<TrainingEngine> engine_ = cpu_engine(config_, pool_);
  const std::unique_ptr<DecodeDevice> device_ = decode_device(engine_->shape(), layout_, engine_->weights());
};

TEST_F(DeviceDecodingMemory, IsPlannedWithinTheBudget) {
  DecoderSettings settings;
  settings.task = beam(8, 2, 20);
  for (const uint64_t budget : {uint64_t{100} << 10, uint64_t{400} << 10, uint64_t{8} << 20}) {
    settings.memory_budget = budget;
    const Decoder decoder(*device_, settings);
    const WorkspaceSize& size = decoder.plan().workspace;
    EXPECT_LE(size.bytes, budget);
    EXPECT_GT(size.device_bytes, 0U);
    uint64_t sum = 0;
    uint64_t on_device = 0;
    for (const MemoryPart& part : size.parts) {
      sum += part.bytes;
      if (part.name.starts_with("GPU ")) on_device += part.bytes;
    }
    EXPECT_EQ(sum, size.bytes);
    EXPECT_EQ(on_device, size.device_bytes);
  }
  settings.memory_budget = 1000;
  EXPECT_THROW(Decoder(*device_, settings), ResourceError);
}

// Neither with inputs nor with steps.
TEST_F(DeviceDecodingMemory, DoesNotGrow) {
  DecoderSettings settings;
  settings.task = beam(4, 2, 30);
  Decoder decoder(*device_, settings);
  const auto decode_many = [&](int inputs) {
    PromptsInMemory feed(std::vector<std::vector<int32_t>>(static_cast<size_t>(inputs), {3, 9}));
    Results results;
    decoder.run(feed, results);
  };
  decode_many(40);
  const uint64_t warm = anonymous_resident_bytes();
  decode_many(200);
  EXPECT_LE(anonymous_resident_bytes(), warm + (uint64_t{2} << 20));
}

TEST(DecodeModel, NeedsTheEndSymbolAtTheRoot) {
  const Config config = EngineCase{"", [](Config&) {}}.config();
  const HeadLayout layout = engine_layout();
  ThreadPool pool(1);
  const auto engine = cpu_engine(config, pool);
  const int32_t in_a_cluster = layout.word_of_row.back();
  EXPECT_THROW(make_decode_device(engine->shape(), layout, engine->weights(), in_a_cluster, at::kCPU,
                                  std::make_shared<HostDecodeKernels>()),
               UsageError);
}

}  // namespace
}  // namespace hsm::test
