#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"
#include "model/model_directory.h"
#include "text/fixture.h"
#include "train/checkpoint.h"
#include "train/tiny_run.h"

namespace hsm {
namespace {

using ::testing::HasSubstr;

std::filesystem::path newest(const std::filesystem::path& folder) {
  std::filesystem::path newest;
  for (const auto& entry : std::filesystem::directory_iterator(folder))
    newest = std::max(newest, entry.path());
  return newest;
}

/// A way to train whose every step must be resumable.
struct Recipe {
  const char* name;
  std::function<void(Config&)> set;
};

void PrintTo(const Recipe& recipe, std::ostream* out) {
  *out << recipe.name;
}

class ResumeTest : public ::testing::TestWithParam<Recipe> {
 protected:
  static void prepare(TinyRun& run) {
    run.config.train.validate_every = {1, 5, 0};
    run.config.train.checkpoint_every = {1, 3, 0};
    GetParam().set(run.config);
  }
  static std::string uninterrupted() {
    TinyRun run;
    prepare(run);
    run.train();
    const auto last = CheckpointStore(run.checkpoints(), 2).load_newest();
    const TensorRef* averaged = last->file.find("average.steps");
    EXPECT_EQ(averaged != nullptr, run.config.train.optimizer.name == "asgd");
    EXPECT_TRUE(averaged == nullptr || *static_cast<const int64_t*>(averaged->data) > 3);
    return run.result();
  }
};

TEST_P(ResumeTest, StoppingAfterAnyStepGivesTheSameBits) {
  const std::string expected = uninterrupted();
  for (int64_t step = 0;; ++step) {
    TinyRun run;
    prepare(run);
    const bool stopped = run.train_until(step) == Outcome::stopped;
    if (stopped) {
      EXPECT_EQ(run.train(true), Outcome::finished);
    }
    ASSERT_EQ(run.result(), expected) << "stopped after step " << step;
    if (!stopped) {
      EXPECT_GT(step, 10);
      break;
    }
  }
}

TEST_P(ResumeTest, CrashingAtAnyStepGivesTheSameBits) {
  const std::string expected = uninterrupted();
  for (int64_t ask = 0;; ++ask) {
    TinyRun run;
    prepare(run);
    const bool crashed = run.crash_at(ask);
    if (crashed) {
      EXPECT_EQ(run.train(true), Outcome::finished);
    }
    ASSERT_EQ(run.result(), expected) << "crashed at question " << ask;
    if (!crashed) break;
  }
}

TEST_P(ResumeTest, StoppingAfterEachStepGivesTheSameBits) {
  const std::string expected = uninterrupted();
  TinyRun run;
  prepare(run);
  bool resume = false;
  while (run.train_until(3, resume) == Outcome::stopped) resume = true;
  EXPECT_EQ(run.result(), expected);
}

INSTANTIATE_TEST_SUITE_P(Recipes, ResumeTest,
                         ::testing::Values(Recipe{"sgd_with_dropout",
                                                  [](Config& c) {
                                                    c.model.dropout = {0.1, 0.2, 0.3, 0.1, 0, false};
                                                    c.model.layers = 2;
                                                    c.model.hidden = {5, 6};
                                                    c.train.schedule = {"plateau", 0, 0.5, 0, 0, 0};
                                                  }},
                                           Recipe{"awd",
                                                  [](Config& c) {
                                                    c.model.dropout.weight = 0.3;
                                                    c.model.dropout.locked = true;
                                                    c.model.dropout.embedding = 0.1;
                                                    c.model.tie_embeddings = true;
                                                    c.train.bptt_jitter = 0.3;
                                                    c.model.dropout.output = 0.2;
                                                    c.model.regularization = {2, 1};
                                                    c.train.optimizer.name = "asgd";
                                                    c.train.optimizer.weight_decay = 0.01;
                                                    c.train.optimizer.average_patience = 1;
                                                    c.train.validate_every = {0, 3, 0};
                                                  }},
                                           Recipe{"momentum_with_weight_decay",
                                                  [](Config& c) {
                                                    c.train.optimizer.name = "momentum";
                                                    c.train.optimizer.learning_rate = 0.2;
                                                    c.train.optimizer.weight_decay = 0.01;
                                                    c.train.schedule.name = "cosine";
                                                    c.train.schedule.warmup_steps = 4;
                                                    c.model.tie_embeddings = true;
                                                  }},
                                           Recipe{"adam_by_sentences",
                                                  [](Config& c) {
                                                    c.train.optimizer.name = "adam";
                                                    c.train.optimizer.learning_rate = 0.02;
                                                    c.train.context = "sentence";
                                                    c.train.bptt = 4;
                                                    c.train.batch = 7;
                                                    c.train.bptt_jitter = 0.5;
                                                    c.vocabulary.unk_singletons = true;
                                                    c.model.cell = "gru";
                                                  }},
                                           Recipe{"sgd_calibrated",
                                                  [](Config& c) { c.train.calibrate = true; }},
                                           Recipe{"adagrad_keeping_the_last",
                                                  [](Config& c) {
                                                    c.train.calibrate = true;
                                                    c.train.optimizer.name = "adagrad";
                                                    c.train.optimizer.learning_rate = 0.2;
                                                    c.train.keep_weights = "last";
                                                    c.train.bptt_jitter = 0.4;
                                                    c.model.cell = "rnn_tanh";
                                                  }}),
                         [](const auto& param) { return std::string(param.param.name); });

TEST(Resume, StartsAfreshWhereNothingIs) {
  TinyRun fresh;
  fresh.train();
  TinyRun resumed;
  EXPECT_EQ(resumed.train(true), Outcome::finished);
  EXPECT_EQ(resumed.result(), fresh.result());
}

TEST(Resume, StopsWithinTheReadingOfTheText) {
  TinyRun run;
  EXPECT_EQ(run.train_until(0), Outcome::stopped);
  EXPECT_TRUE(newest(run.checkpoints()).empty());
  EXPECT_EQ(run.train(true), Outcome::finished);
}

TEST(Resume, StopsWithinTheClustering) {
  TinyRun run;
  run.config.classes.method = "exchange";
  run.train();
  const std::string expected = run.result();
  const std::string classes = read_file(run.path() / "classes.txt");
  // Reading asks once or so, clustering and the reading of the other texts after that.
  int64_t asked = 0;
  for (;; ++asked) {
    std::filesystem::remove_all(run.path());
    run.config.runtime.threads = 1;
    EXPECT_EQ(run.train_until(asked), Outcome::stopped);
    if (std::filesystem::exists(run.path() / "classes.txt")) break;
    run.config.runtime.threads = 3;
    EXPECT_EQ(run.train(true), Outcome::finished);
    EXPECT_EQ(read_file(run.path() / "classes.txt"), classes);
    EXPECT_EQ(run.result(), expected);
  }
  EXPECT_GE(asked, 5) << "hardly asked while clustering";
}

TEST(Resume, LeavesAFinishedRunAlone) {
  TinyRun run;
  run.train();
  const auto written = std::filesystem::last_write_time(run.model());
  const std::string metrics = read_file(run.path() / "metrics.jsonl");
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(std::filesystem::last_write_time(run.model()), written);
  EXPECT_EQ(read_file(run.path() / "metrics.jsonl"), metrics);
}

TEST(Resume, LeavesAFinishedRunAloneWithoutItsCheckpoints) {
  TinyRun run;
  run.train();
  std::filesystem::remove_all(run.checkpoints());
  const std::string metrics = read_file(run.path() / "metrics.jsonl");
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(read_file(run.path() / "metrics.jsonl"), metrics);
  run.config.train.epochs = 9;
  EXPECT_THAT(message_of<UsageError>([&] { run.train(true); }), HasSubstr("no checkpoint"));
}

TEST(Resume, MoreEpochsGoOn) {
  TinyRun longer;
  longer.config.train.epochs = 4;
  longer.train();
  TinyRun run;
  run.train();
  run.config.train.epochs = 4;
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(run.result(), longer.result());
}

TEST(Resume, FallsBackFromADamagedCheckpoint) {
  TinyRun whole;
  whole.config.train.checkpoint_every = {0, 4, 0};
  whole.train();
  TinyRun run;
  run.config.train.checkpoint_every = {0, 4, 0};
  run.train_until(11);
  std::filesystem::resize_file(newest(run.checkpoints()), 1000);
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(run.result(), whole.result());
}

TEST(Resume, RefusesWhenEveryCheckpointIsDamaged) {
  TinyRun run;
  run.train_until(5);
  for (const auto& entry : std::filesystem::directory_iterator(run.checkpoints())) {
    std::filesystem::resize_file(entry.path(), 100);
  }
  EXPECT_THROW(run.train(true), DataError);
}

TEST(Resume, WritesAModelThatAKillLeftUnwritten) {
  TinyRun best;  // killed between the checkpoint of a best validation and its model
  best.config.train.calibrate = true;
  best.train();
  const std::string expected = best.result();
  std::filesystem::remove(best.model());
  const std::string metrics = read_file(best.path() / "metrics.jsonl");
  write_file(best.path() / "metrics.jsonl", metrics.substr(0, metrics.rfind("{\"event\":\"done\"")));
  EXPECT_EQ(best.train(true), Outcome::finished);
  EXPECT_EQ(best.result(), expected);
}

TEST(Resume, MakesAModelAgainThatIsGone) {
  TinyRun run;
  run.train();
  const std::string expected = read_file(run.model());
  std::filesystem::remove(run.model());
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(read_file(run.model()), expected);
  // A best whose weights no checkpoint has.
  TinyRun worse;
  worse.config.train.optimizer.learning_rate = 400;
  worse.config.train.epochs = 5;
  worse.train();
  ASSERT_LT(worse.events("done").at(0)["best_epoch"], 5);
  std::filesystem::remove(worse.model());
  EXPECT_EQ(worse.train(true), Outcome::finished);
  EXPECT_EQ(worse.events("done").size(), 1U);
  EXPECT_EQ(worse.events("done").at(0)["weights"], "last");
  EXPECT_EQ(open_model(worse.path()).weights.metadata().at("epoch"), "5");
}

}  // namespace
}  // namespace hsm
