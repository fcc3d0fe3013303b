#include "base/memory.h"

#include <gtest/gtest.h>

#include <string>

#include "base/error.h"
#include "decode/memory_plan.h"
#include "decode/model_scorer.h"
#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"
#include "model/sample_models.h"

// Sanitizers keep memory of their own.
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define HSM_SANITIZED 1
#else
#define HSM_SANITIZED 0
#endif

namespace hsm::testing {
namespace {

// What a process may need beside the budget, as docs/decoding.md says.
constexpr uint64_t kAllowance = uint64_t{2} << 20;

DecoderSettings beam_settings(int64_t width, int64_t max_length, int64_t nbest = 1) {
  DecoderSettings settings;
  BeamOptions options;
  options.beam = width;
  options.nbest = nbest;
  options.length.max_length = max_length;
  settings.task = options;
  return settings;
}

/// Takes results and keeps none of them.
class Discard : public ResultSink {
 public:
  void begin(const Prompt& /*prompt*/, int64_t /*hypotheses*/) override {}
  void hypothesis(const Prompt& /*prompt*/, const Hypothesis& hypothesis) override {
    longest = std::max(longest, hypothesis.tokens.size());
  }
  void path(const Prompt& /*prompt*/, const NetworkPath& path) override {
    longest = std::max(longest, path.choices.size());
  }
  void end(const Prompt& /*prompt*/) override {}
  void next_words(const Prompt& /*prompt*/, std::span<const Candidate> /*words*/) override {}
  void bad_line(const Prompt& /*prompt*/) override {}
  size_t longest = 0;
};

/// The same prompt again and again.
class SamePrompt : public PromptFeed {
 public:
  explicit SamePrompt(int64_t count) : left_(count) {}
  Status take(Prompt& prompt, bool /*wait*/) override {
    if (left_-- == 0) return Status::end;
    prompt.number = left_;
    prompt.tokens.assign({1, 2, 3});
    return Status::ready;
  }

 private:
  int64_t left_;
};

/// The least budget, as the message of a search that was given next to nothing says it.
uint64_t least_budget(const Scorer& scorer, DecoderSettings settings) {
  settings.memory_budget = 1;
  ThreadPool pool(1);
  try {
    const CpuDecodeDevice device(scorer, pool);
    const Decoder decoder(device, settings);
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    EXPECT_NE(message.find("states"), std::string::npos) << message;
    EXPECT_NE(message.find("hypothesis pool"), std::string::npos) << message;
    constexpr const char* kBefore = "at least ";
    return std::stoull(message.substr(message.find(kBefore) + std::string(kBefore).size()));
  }
  ADD_FAILURE() << "a budget of one byte was enough";
  return 0;
}

TEST(Memory, TheLeastBudgetIsNamedAndIsExactlyEnough) {
  const ScriptedScorer scorer(random_shape(300, 20, 12, 1), Tables::smooth, 1);
  DecoderSettings settings = beam_settings(16, 60, 3);
  const uint64_t least = least_budget(scorer, settings);
  settings.memory_budget = least - 1;
  EXPECT_THROW(decode(scorer, settings, {{}}), ResourceError);
  settings.memory_budget = least;
  EXPECT_EQ(decode(scorer, settings, {{}}).blocks.size(), 1);
}

TEST(Memory, ResultsDoNotDependOnTheBudget) {
  const ScriptedScorer scorer(random_shape(300, 20, 12, 2), Tables::coarse, 2);
  DecoderSettings settings = beam_settings(16, 30, 3);
  const uint64_t least = least_budget(scorer, settings);
  const std::vector<std::vector<int32_t>> prompts{{}, {1}, {2, 3}, {4, 5, 6}, {7}, {8, 9}, {}};
  settings.memory_budget = uint64_t{1} << 30;
  const Results ample = decode(scorer, settings, prompts);
  for (int i = 0; i < 9; ++i) {
    settings.memory_budget = least + static_cast<uint64_t>(i * i) * least / 20;
    EXPECT_EQ(decode(scorer, settings, prompts).blocks, ample.blocks) << settings.memory_budget;
  }
}

TEST(Memory, ThePlanFitsTheBudgetAndItsPartsAddUp) {
  const ScriptedScorer scorer(random_shape(300, 20, 12, 3), Tables::smooth, 3);
  ThreadPool pool(2);
  DecoderSettings settings = beam_settings(4, 50);
  int64_t inputs = 1;
  for (uint64_t budget = 40'000; budget < 10'000'000; budget *= 3) {
    settings.memory_budget = budget;
    const CpuDecodeDevice device(scorer, pool);
    const Decoder decoder(device, settings);
    EXPECT_LE(decoder.plan().workspace.bytes, budget);
    uint64_t sum = 0;
    for (const MemoryPart& part : decoder.plan().workspace.parts) sum += part.bytes;
    EXPECT_EQ(sum, decoder.plan().workspace.bytes);
    EXPECT_GE(decoder.plan().inputs, inputs);
    inputs = decoder.plan().inputs;
  }
  EXPECT_GT(inputs, 8);  // a larger budget is used
}

TEST(Memory, AWorkspaceLargerThanPlannedIsAFaultAndNotAnOverrun) {
  Arena arena(256);
  arena.take<float>(32, "first");
  EXPECT_THROW(arena.take<float>(40, "second"), std::logic_error);
  EXPECT_EQ(arena.take<float>(32, "second").size(), 32);
}

TEST(Memory, TenThousandWordsAtBeam64TakeAFewMegabytes) {
  // No end symbol, so every hypothesis goes to the limit.
  ScriptedScorer scorer(random_shape(200, 10, 8, 4), Tables::smooth, 4);
  DecoderSettings settings = beam_settings(64, 10'000);
  settings.allowed = [&](int32_t word) { return word != scorer.end_of_sentence(); };
  settings.memory_budget = uint64_t{8} << 20;
  ThreadPool pool(1);
  const uint64_t before = anonymous_resident_bytes();
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  SamePrompt feed(1);
  Discard results;
  decoder.run(feed, results);
  EXPECT_EQ(results.longest, 10'000);
  EXPECT_LE(decoder.stats().peak_nodes, 64 * 1000);  // dead branches are collected
  if (HSM_SANITIZED == 0) {
    EXPECT_LE(anonymous_resident_bytes(), before + settings.memory_budget + kAllowance);
  }
}

TEST(Memory, DoesNotGrowWithInputsOrDecodes) {
  const ScriptedScorer scorer(random_shape(2000, 50, 40, 5), Tables::smooth, 5);
  DecoderSettings settings = beam_settings(8, 12);
  settings.memory_budget = uint64_t{4} << 20;
  ThreadPool pool(1);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  Discard results;
  const auto run = [&](int64_t inputs) {
    SamePrompt feed(inputs);
    decoder.run(feed, results);
  };
  run(8);
  const uint64_t warm = anonymous_resident_bytes();
  run(300);
  for (int i = 0; i < 700; ++i) run(1);
  if (HSM_SANITIZED == 0) {
    EXPECT_LE(anonymous_resident_bytes(), warm + (uint64_t{1} << 20));
  }
  for (int i = 0; i < 100; ++i) {  // nor with decoders that come and go
    Decoder another(device, settings);
    SamePrompt feed(3);
    another.run(feed, results);
  }
  if (HSM_SANITIZED == 0) {
    EXPECT_LE(anonymous_resident_bytes(), warm + (uint64_t{1} << 20));
  }
}

TEST(Memory, AModelsSearchStaysWithinItsBudget) {
  const SampleModel sample{"lstm", Cell::lstm, {96, 96}, 64, false, 50, std::vector<int64_t>(40, 50)};
  const ModelOracle oracle = sample.make(1);
  const InferenceModel model(oracle.shape(), oracle.layout(), oracle.weight_view());
  const ModelScorer scorer(model, 0);
  DecoderSettings settings = beam_settings(16, 20);
  settings.memory_budget = uint64_t{2} << 20;
  ThreadPool pool(1);
  const uint64_t before = anonymous_resident_bytes();
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  Discard results;
  SamePrompt feed(100);
  decoder.run(feed, results);
  EXPECT_GT(results.longest, 0);
  if (HSM_SANITIZED == 0) {
    EXPECT_LE(anonymous_resident_bytes(), before + settings.memory_budget + kAllowance);
  }
}

/// A model large enough for its states and scores to weigh something.
class ModelMemory : public ::testing::Test {
 protected:
  /// Growth of resident memory while so many inputs are decoded, after a warm-up with another decoder.
  uint64_t growth(const DecoderSettings& settings, int64_t inputs) {
    ThreadPool pool(2);
    DecoderSettings warm_up = settings;
    warm_up.memory_budget = uint64_t{64} << 20;
    run(warm_up, pool, 1);
    const uint64_t before = anonymous_resident_bytes();
    return std::max(run(settings, pool, inputs), before) - before;
  }
  /// Resident memory at the end of a run, the decoder still there.
  uint64_t run(const DecoderSettings& settings, ThreadPool& pool, int64_t inputs) {
    const CpuDecodeDevice device(scorer_, pool);
    Decoder decoder(device, settings);
    SamePrompt feed(inputs);
    Discard results;
    decoder.run(feed, results);
    longest_ = results.longest;
    return anonymous_resident_bytes();
  }

  const ModelOracle oracle_ =
      SampleModel{"lstm", Cell::lstm, {96, 96}, 64, false, 50, std::vector<int64_t>(40, 50)}.make(1);
  const InferenceModel model_{oracle_.shape(), oracle_.layout(), oracle_.weight_view()};
  const ModelScorer scorer_{model_, 0};
  size_t longest_ = 0;
};

TEST_F(ModelMemory, GrowthStaysWithinEveryBudgetFromTheLeastToAGibibyte) {
  DecoderSettings settings = beam_settings(16, 20, 2);
  const uint64_t least = least_budget(scorer_, settings);
  for (const uint64_t budget : {least, 2 * least, uint64_t{4} << 20, uint64_t{64} << 20, uint64_t{1} << 30}) {
    settings.memory_budget = budget;
    const uint64_t grown = growth(settings, 70);
    EXPECT_LE(HSM_SANITIZED == 0 ? grown : 0, budget + kAllowance) << budget;
  }
}

TEST_F(ModelMemory, IsFlatInTheLengthOfTheOutput) {
  uint64_t grown[2];
  for (const int64_t length : {100, 10'000}) {
    DecoderSettings settings = beam_settings(4, length);
    settings.allowed = [](int32_t word) { return word != 0; };  // no end
    grown[length == 100 ? 0 : 1] = growth(settings, 1);
    EXPECT_EQ(longest_, static_cast<size_t>(length));
  }
  EXPECT_LE(HSM_SANITIZED == 0 ? grown[1] : 0, grown[0] + (uint64_t{1} << 20));
}

TEST_F(ModelMemory, IsFlatInTheNumberOfPrompts) {
  DecoderSettings settings = beam_settings(4, 3);
  settings.batch = 8;
  const uint64_t one = growth(settings, 1);
  const uint64_t many = growth(settings, 10'000);
  EXPECT_LE(HSM_SANITIZED == 0 ? many : 0, one + (uint64_t{1} << 20));
}

/// The same network again and again.
class SameNetwork : public PromptFeed {
 public:
  explicit SameNetwork(int64_t count) : left_(count) {}
  Status take(Prompt& prompt, bool /*wait*/) override {
    if (left_-- == 0) return Status::end;
    prompt.number = left_;
    prompt.network.positions.assign(12, {});
    for (auto& position : prompt.network.positions) {
      for (int32_t word = 1; word < 30; ++word) position.push_back({"word", -0.1 * word, {word}, 0});
    }
    prompt.network.positions[5][3].tokens = {4, 5, 6, 7};
    return Status::ready;
  }

 private:
  int64_t left_;
};

TEST_F(ModelMemory, NetworksKeepToTheBudgetHoweverMany) {
  DecoderSettings settings;
  settings.task = NetworkOptions{8, 2, 1, 0, 0, 100};
  settings.memory_budget = uint64_t{1} << 20;
  ThreadPool pool(2);
  const auto run_networks = [&](int64_t count) {
    const uint64_t before = anonymous_resident_bytes();
    const CpuDecodeDevice device(scorer_, pool);
    Decoder decoder(device, settings);
    SameNetwork feed(count);
    Discard results;
    decoder.run(feed, results);
    EXPECT_EQ(results.longest, 12);
    return std::max(anonymous_resident_bytes(), before) - before;
  };
  run_networks(3);
  const uint64_t few = run_networks(3);
  const uint64_t many = run_networks(400);
  if (HSM_SANITIZED == 0) {
    EXPECT_LE(many, settings.memory_budget + kAllowance);
    EXPECT_LE(many, few + (uint64_t{1} << 20));
  }
}

}  // namespace
}  // namespace hsm::testing
