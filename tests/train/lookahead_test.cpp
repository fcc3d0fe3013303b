// The loop with an engine whose steps are finished later than they are begun.
#include <gtest/gtest.h>

#include <deque>
#include <limits>
#include <stdexcept>

#include "base/error.h"
#include "train/tiny_run.h"

namespace hsm {
namespace {

/// The CPU's engine, which shows the result of a step only when it must, and refuses what a caller may not do
/// while steps are pending. The loss of step `bad_step` is not a number.
class LateEngine final : public TrainingEngine {
 public:
  LateEngine(std::unique_ptr<TrainingEngine> engine, int64_t lookahead, int64_t bad_step)
      : engine_(std::move(engine)), lookahead_(lookahead), bad_step_(bad_step) {}

  [[nodiscard]] const ModelShape& shape() const noexcept override { return engine_->shape(); }
  [[nodiscard]] const HeadLayout& layout() const noexcept override { return engine_->layout(); }
  [[nodiscard]] int64_t lookahead() const noexcept override { return lookahead_; }
  [[nodiscard]] int64_t pending() const noexcept override { return static_cast<int64_t>(results_.size()); }
  void begin_step(const Batch& batch, const StepOptions& options) override {
    if (pending() > lookahead_) throw std::logic_error("more steps pending than the engine asked for");
    engine_->begin_step(batch, options);
    results_.push_back(engine_->finish_step());
    if (options.position.step == bad_step_) results_.back().loss = std::numeric_limits<double>::quiet_NaN();
  }
  StepResult finish_step() override {
    const StepResult result = results_.front();
    results_.pop_front();
    return result;
  }
  void settle() override { idle()->settle(); }
  void start_averaging() override { idle()->start_averaging(); }
  [[nodiscard]] bool averaging() const noexcept override { return engine_->averaging(); }
  WeightView weights() override { return idle()->weights(); }
  std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence, const LogitScales& scales) override {
    return idle()->make_scorer(end_of_sentence, scales);
  }
  void append_state(std::vector<StateTensor>& tensors) override { idle()->append_state(tensors); }
  void restore(const Checkpoint& checkpoint) override { idle()->restore(checkpoint); }

 private:
  TrainingEngine* idle() {
    if (pending() > 0) throw std::logic_error("called while a step is pending");
    return engine_.get();
  }

  std::unique_ptr<TrainingEngine> engine_;
  int64_t lookahead_;
  int64_t bad_step_;
  std::deque<StepResult> results_;
};

TrainingEngineFactory late(int64_t lookahead, int64_t bad_step = -1) {
  return [=](const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool) {
    return std::make_unique<LateEngine>(make_cpu_engine(config, std::move(shape), std::move(layout), pool),
                                        lookahead, bad_step);
  };
}

TEST(Lookahead, ResultsThatComeLaterAreTheSame) {
  TinyRun plain;
  plain.config.train.validate_every = {1, 3, 0};
  plain.config.train.checkpoint_every = {0, 4, 0};
  plain.train();
  for (const int64_t lookahead : {1, 2}) {
    TinyRun run;
    run.config.train = plain.config.train;
    run.make_engine = late(lookahead);
    run.train();
    EXPECT_EQ(run.result(), plain.result()) << lookahead;
  }
}

TEST(Lookahead, StoppedAndResumedItEndsInTheSameBits) {
  TinyRun plain;
  plain.train();
  TinyRun run;
  run.make_engine = late(1);
  EXPECT_EQ(run.train_until(4), Outcome::stopped);
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(run.result(), plain.result());
}

TEST(Lookahead, DivergenceIsToldOfItsStepAndLeavesTheCheckpointsGood) {
  TinyRun run;
  run.config.train.checkpoint_every = {0, 2, 0};
  run.make_engine = late(1, 2);
  try {
    run.train();
    FAIL() << "a loss that is not a number went unseen";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ExitCode::diverged);
    EXPECT_NE(std::string(error.what()).find("step 3: the loss is nan. The checkpoint of step 2"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace hsm
