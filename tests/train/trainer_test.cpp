#include "train/trainer.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <functional>
#include <numeric>
#include <set>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/memory.h"
#include "eval/scoring.h"
#include "model/model_directory.h"
#include "model/safetensors.h"
#include "text/token_file.h"
#include "train/checkpoint.h"
#include "train/tiny_run.h"

namespace hsm {
namespace {

TEST(Trainer, WritesAModelDirectory) {
  TinyRun run;
  EXPECT_EQ(run.train(), Outcome::finished);
  EXPECT_EQ(names_in(run.path()), (std::set<std::string>{".lock", "checkpoints", "classes.txt", "config.json",
                                                         "metrics.jsonl", "model.safetensors", "test.tokens",
                                                         "train.tokens", "valid.tokens", "vocabulary.txt"}));
}

TEST(Trainer, MetricsTellOfEachEpochAndOfTheEnd) {
  TinyRun run;
  run.config.train.schedule = {"epoch_decay", 1, 0.5};
  run.train();
  const auto events = run.events();
  ASSERT_EQ(events.size(), 4U);
  EXPECT_EQ(events[0]["event"], "start");
  for (const size_t epoch : {size_t{1}, size_t{2}}) {
    const auto& event = events[epoch];
    EXPECT_EQ(event["event"], "epoch");
    EXPECT_EQ(event["epoch"], epoch);
    EXPECT_GT(event["train_perplexity"], 1.0);
    EXPECT_LT(event["train_perplexity"], 40.0);
    EXPECT_GT(event["valid_perplexity"], 1.0);
    EXPECT_GT(event["words_per_second"], 0.0);
    EXPECT_GT(event["seconds"], 0.0);
    EXPECT_EQ(event["learning_rate"], epoch == 1 ? 2.0 : 1.0);
    EXPECT_GT(event["peak_memory_bytes"], 1 << 20);
  }
  const auto& done = events[3];
  EXPECT_EQ(done["event"], "done");
  EXPECT_GT(done["test_perplexity"], 1.0);
  EXPECT_EQ(done["reason"], "epochs");
  EXPECT_EQ(done["steps"], events[2]["step"]);
}

TEST(Trainer, LearnsAMadeUpLanguage) {
  TinyRun run;
  write_file(run.text("train"), made_up_text(600, 1));
  run.config.model.hidden = {16};
  run.config.train.epochs = 12;
  run.train();
  const auto epochs = run.events("epoch");
  // Of 24 words two may follow, one of them three times as likely; a line begins with any and ends anywhere.
  EXPECT_GT(epochs.front()["valid_perplexity"], 8.0);
  EXPECT_LT(epochs.back()["valid_perplexity"], 5.5);
}

TEST(Trainer, TestPerplexityIsThatOfTheSavedModel) {
  TinyRun run;
  run.train();
  const SavedModel saved = open_model(run.path());
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  ThreadPool pool(1);
  const TokenFile tokens(run.path() / "test.tokens");
  const double expected = score_corpus(model, saved.vocabulary, tokens, Context::stream, pool).perplexity();
  EXPECT_EQ(run.events("done")[0]["test_perplexity"], expected);
}

TEST(Trainer, KeepsTheBestWeightsOrTheLast) {
  TinyRun best;
  best.config.train.optimizer.learning_rate = 200;  // rises until it destroys what the first steps learnt
  best.config.train.schedule.warmup_steps = 200;
  best.config.train.validate_every = {0, 1, 0};
  best.config.train.max_steps = 12;
  best.config.train.epochs = 0;
  TinyRun last;
  last.config.train = best.config.train;
  last.config.train.keep_weights = "last";
  best.train();
  last.train();

  double lowest = 1e9;
  int64_t lowest_step = 0;
  for (const auto& event : best.events()) {
    if (event["event"] != "epoch" && event["event"] != "validation") continue;
    if (event["valid_perplexity"].get<double>() >= lowest) continue;
    lowest = event["valid_perplexity"];
    lowest_step = event["step"];
  }
  ASSERT_LT(lowest_step, 12);
  const auto done = best.events("done").at(0);
  EXPECT_EQ(open_model(best.path()).weights.metadata().at("step"), std::to_string(lowest_step));
  EXPECT_EQ(done["valid_perplexity"], lowest);
  EXPECT_EQ(done["weights"], "best");
  EXPECT_EQ(open_model(last.path()).weights.metadata().at("step"), "12");
  EXPECT_EQ(last.events("done").at(0)["weights"], "last");
  EXPECT_GT(last.events("done").at(0)["test_perplexity"], done["test_perplexity"]);
}

TEST(Trainer, ACalibratedModelIsTheTrainedOneWithScaledLogits) {
  for (const char* keep : {"best", "last"}) {
    TinyRun plain;
    plain.config.train.keep_weights = keep;
    plain.config.train.epochs = 1;
    plain.train();
    TinyRun run;
    run.config.train = plain.config.train;
    run.config.train.calibrate = true;
    run.train();
    const auto epoch = run.events("epoch").at(0);
    const double calibrated = epoch["valid_perplexity"];
    EXPECT_LT(calibrated, plain.events("epoch").at(0)["valid_perplexity"]);
    EXPECT_TRUE(plain.events("epoch").at(0)["root_scale"].is_null());
    EXPECT_EQ(run.events("done").at(0)["valid_perplexity"], calibrated);

    const SavedModel saved = open_model(run.path());
    const SavedModel before = open_model(plain.path());
    const auto& metadata = saved.weights.metadata();
    for (const char* key : {"root_scale", "cluster_scale"}) {
      EXPECT_NE(epoch[key], 1.0);
      EXPECT_EQ(nlohmann::json::parse(metadata.at(key)), epoch[key]);
      EXPECT_FALSE(before.weights.metadata().contains(key));
    }
    const ScaledWeights expected(before.shape, before.layout, before.weight_view(),
                                 {epoch["root_scale"], epoch["cluster_scale"]});
    const std::vector<TensorSpec> specs = parameter_specs(saved.shape);
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto size = static_cast<size_t>(
          std::accumulate(specs[i].shape.begin(), specs[i].shape.end(), int64_t{1}, std::multiplies<>()));
      EXPECT_TRUE(std::equal(expected.view().tensors[i], expected.view().tensors[i] + size,
                             saved.weight_view().tensors[i]))
          << specs[i].name;
    }
    ThreadPool pool(1);
    const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
    const TokenFile tokens(run.path() / "valid.tokens");
    EXPECT_EQ(score_corpus(model, saved.vocabulary, tokens, Context::stream, pool).perplexity(), calibrated);
  }
}

TEST(Trainer, AveragesFromTheFirstValidationThatStagnates) {
  // Plain SGD, with every step's weights kept in checkpoints, makes the steps that are averaged.
  TinyRun plain;
  plain.config.train.optimizer.learning_rate = 8;
  plain.config.train.validate_every = {0, 1, 0};
  plain.config.train.checkpoint_every = {0, 1, 0};
  plain.config.train.keep_checkpoints = 1000;
  plain.config.train.keep_weights = "last";
  TinyRun averaged;
  averaged.config.train = plain.config.train;
  averaged.config.train.optimizer.name = "asgd";
  averaged.config.train.optimizer.average_patience = 2;
  plain.train();
  averaged.train();

  std::vector<double> perplexities;
  int64_t begin = -1;
  for (const auto& event : plain.events()) {
    if (!event.contains("valid_perplexity") || event["event"] == "done") continue;
    const double perplexity = event["valid_perplexity"];
    for (size_t i = 0; i + 2 < perplexities.size(); ++i) {
      if (begin < 0 && perplexity > perplexities[i]) begin = event["step"];
    }
    perplexities.push_back(perplexity);
  }
  const int64_t steps = plain.events("done").at(0)["steps"];
  ASSERT_GT(begin, 3);
  ASSERT_LT(begin + 5, steps);
  const auto checkpoint = [](const TinyRun& run, int64_t step) {
    return SafetensorsFile(run.checkpoints() / fmt::format("step-{:09}.safetensors", step));
  };
  const SafetensorsFile last = checkpoint(averaged, steps);
  const SavedModel model = open_model(averaged.path());
  for (const char* name : {"rnn.weight_hh_l0", "head.cluster.bias"}) {
    std::vector<double> mean;
    for (int64_t step = begin + 1; step <= steps; ++step) {
      const SafetensorsFile file = checkpoint(plain, step);
      const TensorRef* tensor = file.find(std::string("parameter.") + name);
      ASSERT_NE(tensor, nullptr);
      const auto* values = static_cast<const float*>(tensor->data);
      mean.resize(static_cast<size_t>(tensor->count()));
      // The first of them has left the mean by the time there are two: torch.optim.ASGD.
      for (size_t i = 0; i < mean.size(); ++i) {
        const double share = 1.0 / static_cast<double>(std::max<int64_t>(1, step - begin - 1));
        mean[i] += share * (values[i] - mean[i]);
      }
    }
    for (const TensorRef* tensor :
         {last.find(std::string("average.") + name), model.weights.find(std::string(name))}) {
      ASSERT_NE(tensor, nullptr) << name;
      const auto* values = static_cast<const float*>(tensor->data);
      for (size_t i = 0; i < mean.size(); ++i) EXPECT_NEAR(values[i], mean[i], 1e-5) << name;
    }
  }
}

TEST(Trainer, WithoutValidationTextTheLastWeightsAreKept) {
  TinyRun run;
  run.config.data.valid.clear();
  run.config.data.test.clear();
  run.train();
  EXPECT_TRUE(run.events("epoch")[1]["valid_perplexity"].is_null());
  EXPECT_TRUE(run.events("done")[0]["test_perplexity"].is_null());
  EXPECT_EQ(open_model(run.path()).weights.metadata().at("epoch"), "2");
}

TEST(Trainer, SumOverTimeIsTheMeanTimesTheLengthOfAWindow) {
  TinyRun sum;
  sum.config.train.loss_reduction = "sum_over_time";
  sum.config.train.clip_norm = 0;
  sum.config.train.optimizer.learning_rate = 0.125;
  sum.config.train.max_steps = 10;  // whole windows only
  sum.train();
  TinyRun mean;
  mean.config.train = sum.config.train;
  mean.config.train.loss_reduction = "mean";
  mean.config.train.optimizer.learning_rate = 0.125 * 8;
  mean.train();
  const double expected = sum.events("done")[0]["test_perplexity"];
  EXPECT_NEAR(mean.events("done")[0]["test_perplexity"], expected, 1e-5 * expected);
  mean.config.output.directory += "-other";
  mean.config.train.optimizer.learning_rate = 0.125;
  mean.train();
  EXPECT_GT(std::abs(mean.events("done")[0]["test_perplexity"].get<double>() - expected), 1e-3);
}

TEST(Trainer, MaxStepsEndsWithinAnEpochAfterAValidation) {
  TinyRun run;
  run.config.train.max_steps = 5;
  run.train();
  const auto events = run.events();
  ASSERT_EQ(events.size(), 3U);
  EXPECT_EQ(events[1]["event"], "validation");
  EXPECT_EQ(events[1]["epoch"], 1);
  EXPECT_EQ(events[1]["step"], 5);
  EXPECT_EQ(events[2]["reason"], "max_steps");
  EXPECT_EQ(open_model(run.path()).weights.metadata().at("step"), "5");
}

TEST(Trainer, ValidatesBySteps) {
  TinyRun run;
  run.config.train.epochs = 0;
  run.config.train.max_steps = 20;
  run.config.train.validate_every = {0, 4, 0};
  run.train();
  std::vector<int64_t> steps;
  for (const auto& event : run.events()) {
    if (event.value("valid_perplexity", nlohmann::json()).is_number() && event["event"] != "done")
      steps.push_back(event["step"]);
  }
  EXPECT_EQ(steps, (std::vector<int64_t>{4, 8, 12, 16, 20}));
}

TEST(Trainer, StopsEarlyWithoutImprovement) {
  TinyRun run;
  run.config.train.epochs = 10;
  run.config.train.optimizer.learning_rate = 1e-30;  // nothing changes, so only the first is an improvement
  run.config.train.early_stopping = 3;
  run.train();
  EXPECT_EQ(run.events("epoch").size(), 4U);
  EXPECT_EQ(run.events("done")[0]["reason"], "early_stopping");
  EXPECT_EQ(run.events("done")[0]["best_epoch"], 1);
}

TEST(Trainer, PlateauLowersTheRate) {
  TinyRun run;
  run.config.train.epochs = 6;
  run.config.train.optimizer.learning_rate = 1e-30;
  run.config.train.schedule.name = "plateau";
  run.config.train.schedule.factor = 0.25;
  run.config.train.schedule.patience = 1;
  run.train();
  std::vector<double> rates;
  for (const auto& event : run.events("epoch")) rates.push_back(event["learning_rate"]);
  EXPECT_EQ(rates, (std::vector<double>{1e-30, 1e-30, 1e-30, 0.25e-30, 0.25e-30, 0.0625e-30}));
}

TEST(Trainer, TheNumberOfThreadsChangesNothing) {
  TinyRun one;
  one.train();
  TinyRun three;
  three.config.runtime.threads = 3;
  three.train();
  EXPECT_EQ(one.result(), three.result());
}

TEST(Trainer, StepsInPiecesTrainTheSameModelWithinRounding) {
  TinyRun whole;
  whole.config.model.dropout.output = 0.25;
  whole.train();
  const double expected = whole.events("done")[0]["test_perplexity"];
  const auto train_with = [&](auto change) {
    TinyRun pieces;
    pieces.config.model.dropout.output = 0.25;
    change(pieces.config.train);
    pieces.train();
    EXPECT_NEAR(pieces.events("done")[0]["test_perplexity"], expected, 1e-4 * expected);
    EXPECT_NE(read_file(pieces.model()), read_file(whole.model()));  // sums in another order round otherwise
  };
  train_with([](TrainConfig& train) { train.micro_batches = 2; });
  train_with([](TrainConfig& train) { train.head_chunk = 7; });
}

TEST(Trainer, SavesACheckpointOnRequestAndGoesOn) {
  TinyRun run;
  run.config.train.checkpoint_every = {0, 0, 0};
  run.config.train.max_steps = 9;
  int64_t asked = 0;
  std::set<std::string> seen;
  const auto request = [&] { return ++asked == 5; };  // before the fifth step
  const auto stop = [&] {
    if (asked == 5) seen = names_in(run.checkpoints());
    return false;
  };
  EXPECT_EQ(hsm::train(run.config, false, {stop, request}), Outcome::finished);
  EXPECT_TRUE(seen.contains("step-000000004.safetensors"));
}

}  // namespace
}  // namespace hsm
