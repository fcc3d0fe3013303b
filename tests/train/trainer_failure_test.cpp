#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "model/safetensors.h"
#include "train/checkpoint.h"
#include "train/file_size_limit.h"
#include "train/run_directory.h"
#include "train/tiny_run.h"

// Trainings that are refused, fail or diverge, and what they leave.
namespace hsm {
namespace {

using ::testing::HasSubstr;

template <class Action>
ExitCode code_of(Action&& action, std::string* message = nullptr) {
  try {
    action();
  } catch (const Error& error) {
    if (message != nullptr) *message = error.what();
    return error.code();
  }
  return ExitCode::done;
}

TEST(Trainer, OnTheCpuOtherPrecisionsThanFp32AreRefused) {
  TinyRun run;
  run.config.train.precision = "bf16";
  try {
    run.train();
    FAIL() << "bf16 was accepted";
  } catch (const UsageError& error) {
    EXPECT_NE(std::string(error.what()).find("train.precision: \"bf16\""), std::string::npos) << error.what();
  }
}

TEST(Trainer, DivergenceKeepsTheLastGoodCheckpoint) {
  TinyRun run;
  run.config.train.clip_norm = 0;
  run.config.train.optimizer.learning_rate = 1e38;
  run.config.train.checkpoint_every = {0, 1, 0};
  std::string message;
  EXPECT_EQ(code_of([&] { run.train(); }, &message), ExitCode::diverged);
  EXPECT_THAT(message, HasSubstr("diverged"));
  const auto checkpoint = CheckpointStore(run.checkpoints(), 2).load_newest();
  ASSERT_TRUE(checkpoint);
  for (const TensorRef& tensor : checkpoint->file.tensors()) {
    if (tensor.dtype != DType::f32) continue;
    const auto* values = static_cast<const float*>(tensor.data);
    EXPECT_TRUE(std::all_of(values, values + tensor.count(), [](float x) { return std::isfinite(x); }));
  }
  EXPECT_TRUE(run.events("done").empty());
}

TEST(Trainer, PerplexitiesBeyondADoubleAreDivergence) {
  for (const bool validates : {true, false}) {
    TinyRun run;
    run.config.train.clip_norm = 0;
    run.config.train.optimizer.learning_rate = 3e6;
    if (validates) {
      run.config.train.validate_every = {0, 1, 0};
    } else {
      run.config.data.valid.clear();
    }
    std::string message;
    EXPECT_EQ(code_of([&] { run.train(); }, &message), ExitCode::diverged);
    EXPECT_THAT(message, HasSubstr(validates ? "the validation perplexity is inf"
                                             : "the training perplexity is infinite"));
    EXPECT_FALSE(std::filesystem::exists(run.model()));
  }
}

TEST(Trainer, RefusesADirectoryThatHoldsARun) {
  TinyRun run;
  run.train_until(3);
  const auto before = names_in(run.checkpoints());
  std::string message;
  EXPECT_EQ(code_of([&] { run.train(); }, &message), ExitCode::usage);
  EXPECT_THAT(message, HasSubstr("--resume"));
  EXPECT_EQ(names_in(run.checkpoints()), before);
}

TEST(Trainer, AStartThatFailsLeavesNoRun) {
  TinyRun run;
  run.config.classes.clusters = 1000;
  EXPECT_EQ(code_of([&] { run.train(); }), ExitCode::usage);
  run.config.classes.clusters = 4;
  const std::vector<std::string> valid = run.config.data.valid;
  run.config.data.valid = {run.text("missing").string()};
  EXPECT_NE(code_of([&] { run.train(); }), ExitCode::done);
  run.config.data.valid = valid;
  run.config.train.precision = "bf16";
  EXPECT_EQ(code_of([&] { run.train(); }), ExitCode::usage);
  run.config.train.precision = "fp32";
  EXPECT_EQ(run.train(), Outcome::finished);
}

TEST(Trainer, FilesThatAreReadLateAreLookedForFirst) {
  for (const char* name : {"data.valid", "data.test", "classes.file"}) {
    TinyRun run;
    const std::string missing = run.text("missing");
    if (name == std::string("data.valid")) run.config.data.valid = {missing};
    if (name == std::string("data.test")) run.config.data.test = {missing};
    if (name == std::string("classes.file")) {
      run.config.classes = {};
      run.config.classes.method = "file";
      run.config.classes.file = missing;
    }
    EXPECT_THROW(run.train(), DataError) << name;
    EXPECT_FALSE(std::filesystem::exists(run.path() / "train.tokens")) << name;
  }
}

TEST(Trainer, ABadValidationTextShowsBeforeClassesAreMade) {
  TinyRun run;
  write_file(run.text("valid"), "a \xFF\n");
  run.config.classes.clusters = 5'000;  // more than there are words
  EXPECT_THROW(run.train(), DataError);
}

TEST(Trainer, RefusesADirectoryWhereAnotherTrains) {
  TinyRun run;
  const RunDirectory other(run.path());
  std::string message;
  EXPECT_EQ(code_of([&] { run.train(); }, &message), ExitCode::resource);
  EXPECT_THAT(message, HasSubstr("another process"));
}

TEST(Trainer, AFullDiskShowsBeforeTheFirstStep) {
  TinyRun run;
  int64_t asked = 0;
  const FileSizeLimit limit(4096);  // enough for the texts, not for a checkpoint
  EXPECT_EQ(code_of([&] {
              hsm::train(run.config, false, {[&] { return asked++ > 1000; }, [&] { return false; }});
            }),
            ExitCode::resource);
  EXPECT_TRUE(names_in(run.checkpoints()).empty());
  EXPECT_EQ(run.events("epoch").size(), 0U);
}

}  // namespace
}  // namespace hsm
