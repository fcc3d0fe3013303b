#include "decode/step_loop.h"

#include <gtest/gtest.h>

#include "base/error.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

DecoderSettings settings_with_batch(int64_t batch) {
  DecoderSettings settings;
  BeamOptions options;
  options.beam = 2;
  options.length.max_length = 5;
  settings.task = options;
  settings.batch = batch;
  return settings;
}

/// Fails at its fourth prompt.
class BrokenFeed : public PromptFeed {
 public:
  Status take(Prompt& prompt, bool /*wait*/) override {
    if (next_ == 3) throw DataError("input:4: malformed");
    prompt.number = next_++;
    prompt.tokens = {1};
    return Status::ready;
  }

 private:
  int64_t next_ = 0;
};

TEST(StepLoop, AnErrorOfTheInputComesAfterTheResultsBeforeIt) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 1), Tables::smooth, 1);
  for (const int64_t batch : {1, 2, 8}) {
    ThreadPool pool(1);
    const CpuDecodeDevice device(scorer, pool);
    Decoder decoder(device, settings_with_batch(batch));
    BrokenFeed feed;
    Results results;
    EXPECT_THROW(decoder.run(feed, results), DataError);
    EXPECT_EQ(results.blocks.size(), 3);
  }
}

/// Gives the next prompt only when the answer to the one before has been written.
class Conversation : public PromptFeed {
 public:
  explicit Conversation(const Results& results) : results_(&results) {}
  Status take(Prompt& prompt, bool wait) override {
    if (!wait) return Status::none_yet;
    EXPECT_EQ(static_cast<int64_t>(results_->blocks.size()), next_);
    if (next_ == 5) return Status::end;
    prompt.number = next_++;
    prompt.tokens = {static_cast<int32_t>(next_)};
    return Status::ready;
  }

 private:
  const Results* results_;
  int64_t next_ = 0;
};

TEST(StepLoop, AnswersEachLineBeforeItWaitsForTheNext) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 2), Tables::smooth, 2);
  ThreadPool pool(1);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings_with_batch(8));
  Results results;
  Conversation feed(results);
  decoder.run(feed, results);
  EXPECT_EQ(results.blocks.size(), 5);
}

TEST(StepLoop, CanRunAgain) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 3), Tables::smooth, 3);
  ThreadPool pool(1);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings_with_batch(2));
  Results first;
  Results second;
  for (Results* results : {&first, &second}) {
    PromptsInMemory feed({{1}, {2, 3}, {}});
    decoder.run(feed, *results);
  }
  EXPECT_EQ(first.blocks, second.blocks);
  EXPECT_EQ(decoder.stats().inputs, 6);
}

// Inputs that need no step at all are finished where they stand.
TEST(StepLoop, HandlesInputsThatAreCompleteAtOnce) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 4), Tables::smooth, 4);
  DecoderSettings settings = settings_with_batch(2);
  std::get<BeamOptions>(settings.task).length.max_length = 0;
  const Results results = decode(scorer, settings, {{}, {1, 2}, {}, {}, {3}});
  ASSERT_EQ(results.blocks.size(), 5);
  for (const auto& block : results.blocks) EXPECT_EQ(block.outputs.size(), 1);
}

}  // namespace
}  // namespace hsm::testing
