#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"
#include "model/model_directory.h"
#include "text/fixture.h"
#include "train/checkpoint.h"
#include "train/tiny_run.h"

// What a run makes of settings, texts and files that changed before it goes on.
namespace hsm {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

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
  const std::string message = message_of<UsageError>([&] { run.train(true); });
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
    EXPECT_THAT(message_of<DataError>([&] { run.train(true); }), StartsWith(file.string()));
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
