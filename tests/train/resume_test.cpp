#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <string>

#include "base/error.h"
#include "model/model_directory.h"
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

std::string usage_message(const std::function<void()>& action) {
  try {
    action();
  } catch (const UsageError& error) {
    return error.what();
  }
  return "no UsageError";
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
  EXPECT_THAT(usage_message([&] { run.train(true); }), HasSubstr("no checkpoint"));
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

// A run that was calibrated, stopped right after the best validation.
void train_calibrated_until_the_best(TinyRun& run) {
  run.config.train.calibrate = true;
  run.config.train.validate_every = {0, 5, 0};
  run.config.train.checkpoint_every = {0, 5, 0};
  for (int64_t ask = 6;; ++ask) {
    std::filesystem::remove_all(run.path());
    ASSERT_EQ(run.train_until(ask), Outcome::stopped);
    const TrainingState state = CheckpointStore(run.checkpoints(), 2).load_newest()->state;
    if (state.validations.best_step == state.position.step) break;
  }
}

TEST(Resume, WithoutCalibrationKeepsABestModelThatHadIt) {
  TinyRun run;
  train_calibrated_until_the_best(run);
  const std::string best = read_file(run.model());
  run.config.train.calibrate = false;
  run.config.train.max_steps = 1;  // ends at once
  run.train(true);
  EXPECT_EQ(read_file(run.model()), best);
  EXPECT_TRUE(open_model(run.path()).weights.metadata().contains("root_scale"));
}

TEST(Resume, ScalesOfAnEarlierValidationDoNotReachLaterWeights) {
  TinyRun run;
  run.config.train.keep_weights = "last";
  train_calibrated_until_the_best(run);
  run.config.data.valid.clear();
  run.config.train.calibrate = false;
  run.train(true);
  TinyRun plain;
  plain.config.data.valid.clear();
  plain.config.train.keep_weights = "last";
  plain.train();
  EXPECT_EQ(read_file(run.model()), read_file(plain.model()));
}

TEST(Resume, CalibratesWhatWasTrainedWithout) {
  TinyRun whole;
  whole.config.train.calibrate = true;
  whole.train();
  TinyRun run;
  run.train_until(5);
  run.config.train.calibrate = true;
  run.train(true);
  EXPECT_EQ(run.result(), whole.result());
}

TEST(Resume, RefusesAnotherModel) {
  TinyRun run;
  run.train_until(5);
  run.config.model.cell = "gru";
  run.config.train.batch = 4;
  run.config.train.max_steps = 3;  // may change
  const std::string message = usage_message([&] { run.train(true); });
  EXPECT_THAT(message, HasSubstr("model.cell: \"lstm\" before, \"gru\" now"));
  EXPECT_THAT(message, HasSubstr("train.batch: 3 before, 4 now"));
  EXPECT_THAT(message, ::testing::Not(HasSubstr("max_steps")));
}

TEST(Resume, GoesOnWithAnotherRate) {
  TinyRun run;
  run.train_until(5);
  run.config.train.optimizer.learning_rate = 0.5;
  run.train(true);
  EXPECT_EQ(run.events("epoch").back()["learning_rate"], 0.5);
  EXPECT_THAT(read_file(run.path() / "config.json"), HasSubstr("\"learning_rate\": 0.5"));
}

TEST(Resume, GoesOnWithWeightDecay) {
  for (const char* name : {"sgd", "asgd"}) {
    TinyRun run;
    run.config.train.optimizer.name = name;
    run.train_until(9);
    run.config.train.optimizer.weight_decay = 0.5;
    EXPECT_EQ(run.train(true), Outcome::finished) << name;
    // It works on the rows of words that batches touch now and then, too.
    TinyRun without;
    without.config.train.optimizer.name = name;
    without.train();
    const auto size = [](const TinyRun& of) {
      const SavedModel model = open_model(of.path());
      const TensorRef* embedding = model.weights.find("embedding.weight");
      const auto* values = static_cast<const float*>(embedding->data);
      return std::inner_product(values, values + embedding->count(), values, 0.0);
    };
    EXPECT_LT(size(run), 0.5 * size(without));
  }
}

TEST(Resume, WeightDecayBeginsWhereItIsAskedFor) {
  // From the checkpoint before the first step, which is of a run without, the bits are those of a run with
  // it.
  TinyRun with;
  with.config.train.optimizer.weight_decay = 0.01;
  with.train();
  TinyRun run;
  run.config.train.keep_checkpoints = 1000;
  run.train_until(9);
  for (const auto& entry : std::filesystem::directory_iterator(run.checkpoints())) {
    if (entry.path() != run.checkpoints() / "step-000000000.safetensors") {
      std::filesystem::remove(entry.path());
    }
  }
  run.config.train.optimizer.weight_decay = 0.01;
  run.train(true);
  EXPECT_EQ(run.result(), with.result());
}

TEST(Resume, BeginsToAverageWhenAskedTo) {
  TinyRun run;
  run.config.train.optimizer.name = "asgd";
  run.config.train.optimizer.average_patience = 1000;
  run.train_until(9);
  const auto steps = [&run]() -> int64_t {
    const auto checkpoint = CheckpointStore(run.checkpoints(), 2).load_newest();
    const TensorRef* saved = checkpoint->file.find("average.steps");
    return saved == nullptr ? -1 : *static_cast<const int64_t*>(saved->data);
  };
  const int64_t made = CheckpointStore(run.checkpoints(), 2).load_newest()->state.position.step;
  EXPECT_EQ(steps(), -1);
  run.config.train.optimizer.average_patience = 0;
  run.train(true);
  EXPECT_EQ(steps(), run.events("done").at(0)["steps"].get<int64_t>() - made);
}

TEST(Resume, RefusesAnotherTrainingText) {
  TinyRun run;
  run.train_until(5);
  const std::string settings = read_file(run.path() / "config.json");
  write_file(run.text("train"), made_up_text(40, 9));
  run.config.train.optimizer.learning_rate = 0.5;
  EXPECT_THROW(run.train(true), DataError);
  EXPECT_EQ(read_file(run.path() / "config.json"), settings);
}

TEST(Resume, RefusesOtherClasses) {
  TinyRun run;
  run.train_until(5);
  const std::filesystem::path file = run.path() / "classes.txt";
  const std::string own = read_file(file);
  std::string edited = own;  // the last word of cluster 2 moved to cluster 1
  edited.replace(edited.rfind("\t2\n"), 3, "\t1\n");
  for (const std::string& classes : {edited, own + "unheard-of\t0\n"}) {
    write_file(file, classes);
    try {
      run.train(true);
      ADD_FAILURE() << "went on with\n" << classes;
    } catch (const DataError& error) {
      EXPECT_EQ(std::string(error.what()).find(file.string()), 0U) << error.what();
    }
  }
  write_file(file, own);
  EXPECT_EQ(run.train(true), Outcome::finished);
}

TEST(Resume, ANewValidationTextBeginsTheSearchForTheBestAnew) {
  TinyRun run;
  run.config.train.validate_every = {0, 2, 0};
  run.config.train.max_steps = 6;
  run.train();
  run.config.train.max_steps = 12;
  write_file(run.text("valid"), "never heard of these words\n");  // whatever is trained, worse than before
  run.train(true);
  double best = INFINITY;
  int64_t validations = 0;
  for (const auto& event : run.events()) {
    if (event["event"] == "done" || event["event"] == "start") continue;
    if (event["step"] <= 6 || event["valid_perplexity"].is_null()) continue;
    best = std::min(best, event["valid_perplexity"].get<double>());
    ++validations;
  }
  EXPECT_GE(validations, 3);
  EXPECT_EQ(run.events("done").at(0)["valid_perplexity"], best);
  EXPECT_GT(std::stoll(open_model(run.path()).weights.metadata().at("step")), 6);
}

TEST(Resume, WithoutTheValidationTextTheModelHasTheLastWeights) {
  TinyRun plain;
  plain.config.data.valid.clear();
  plain.config.train.optimizer.learning_rate = 1;
  plain.train();
  TinyRun run;
  run.config.train.optimizer.learning_rate = 1;
  run.config.train.epochs = 1;
  run.train();
  run.config.train.epochs = 2;
  run.config.data.valid.clear();
  run.train(true);
  EXPECT_EQ(read_file(run.model()), read_file(plain.model()));
  EXPECT_EQ(run.events("done").at(0)["weights"], "last");
  EXPECT_TRUE(run.events("done").at(0)["valid_perplexity"].is_null());
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

TEST(Resume, KeepsItsClassesWhereTheirFileWent) {
  TinyRun first;
  first.train_until(5);
  TinyRun run;
  std::filesystem::copy_file(first.path() / "classes.txt", run.text("classes"));
  run.config.classes = {};
  run.config.classes.method = "file";
  run.config.classes.file = run.text("classes");
  run.train_until(5);
  std::filesystem::rename(run.text("classes"), run.text("moved"));
  run.config.classes.file = run.text("moved");
  EXPECT_EQ(run.train(true), Outcome::finished);
}

TEST(Resume, FollowsATextThatMoved) {
  TinyRun run;
  run.train();
  const std::string expected = run.result();
  TinyRun moved;
  moved.train_until(9);
  std::filesystem::rename(moved.text("train"), moved.text("elsewhere"));
  moved.config.data.train = {moved.text("elsewhere").string()};
  moved.train(true);
  EXPECT_EQ(moved.result(), expected);
}

TEST(Resume, EndsAtOnceWhenFewerStepsAreAskedForThanWereMade) {
  TinyRun run;
  run.train_until(9);
  const int64_t made = CheckpointStore(run.checkpoints(), 2).load_newest()->state.position.step;
  ASSERT_GT(made, 4);
  run.config.train.max_steps = 4;
  EXPECT_EQ(run.train(true), Outcome::finished);
  EXPECT_EQ(run.events("done").at(0)["steps"], made);
  // The validation at the end has its line as every other.
  const auto validation = run.events("validation").back();
  EXPECT_EQ(validation["step"], made);
  EXPECT_EQ(validation["valid_perplexity"], run.events("done").at(0)["valid_perplexity"]);
  EXPECT_EQ(validation["learning_rate"], run.config.train.optimizer.learning_rate);
  EXPECT_EQ(open_model(run.path()).weights.metadata().at("step"), std::to_string(made));
}

}  // namespace
}  // namespace hsm
