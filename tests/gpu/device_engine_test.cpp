// Whole training steps of the device's engine, in host memory with the device's kernels run there, against
// the engine of the CPU.
#include "gpu/engine/device_engine.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "eval/token_scorer.h"
#include "gpu/engines.h"
#include "model/inference_model.h"
#include "train/temporary_folder.h"

namespace hsm::test {
namespace {

class DeviceEngine : public testing::TestWithParam<EngineCase> {
 protected:
  const Config config_ = GetParam().config();
  ThreadPool pool_{1};
};

void train_steps(TrainingEngine& engine, int64_t first, int64_t last) {
  for (int64_t number = first; number < last; ++number) train_step(engine, number);
}

void save_after(int64_t steps, TrainingEngine& engine, const hsm::TemporaryFolder& folder) {
  TrainingState state;
  state.position.step = steps;
  state.streams = kEngineStreams;
  std::vector<StateTensor> tensors;
  engine.append_state(tensors);
  CheckpointStore(folder.path(), 1).save(state, tensors);
}

void restore_from(const hsm::TemporaryFolder& folder, TrainingEngine& engine) {
  engine.restore(CheckpointStore(folder.path(), 1).load_newest().value());
}

TEST_P(DeviceEngine, TrainsAsTheCpuDoes) {
  const auto cpu = cpu_engine(config_, pool_);
  const auto device = device_engine(config_, pool_);
  expect_same_state(*device, *cpu, 0);
  for (int64_t number = 0; number < 5; ++number) {
    const StepResult expected = train_step(*cpu, number);
    const StepResult result = train_step(*device, number);
    EXPECT_EQ(result.position.step, number);
    EXPECT_EQ(result.targets, expected.targets);
    const double tolerance = test_device() ? 1e-4 : 1e-5;
    EXPECT_NEAR(result.loss, expected.loss, tolerance * expected.loss);
    EXPECT_NEAR(result.norm, expected.norm, 10 * tolerance * expected.norm);
  }
  expect_same_state(*device, *cpu, 2e-5);
}

TEST_P(DeviceEngine, APendingStepChangesNothing) {
  const auto waiting = device_engine(config_, pool_);
  const auto running = device_engine(config_, pool_);
  std::vector<double> losses;
  std::vector<double> late;
  for (int64_t number = 0; number < 5; ++number) {
    losses.push_back(train_step(*waiting, number).loss);
    const Batch batch = engine_window(number);
    running->begin_step(batch, engine_step(batch, number));
    if (running->pending() > running->lookahead()) late.push_back(running->finish_step().loss);
  }
  while (running->pending() > 0) late.push_back(running->finish_step().loss);
  EXPECT_EQ(late, losses);
  expect_same_state(*running, *waiting, 0);
}

// Saved by one kind of engine, a checkpoint is one for both.
TEST_P(DeviceEngine, GoesOnFromItsOwnCheckpointAndTheCpus) {
  const auto cpu = cpu_engine(config_, pool_);
  const auto device = device_engine(config_, pool_);
  const hsm::TemporaryFolder of_cpu;
  const hsm::TemporaryFolder of_device;
  train_steps(*cpu, 0, 3);
  train_steps(*device, 0, 3);
  save_after(3, *cpu, of_cpu);
  save_after(3, *device, of_device);
  train_steps(*cpu, 3, 6);
  train_steps(*device, 3, 6);

  const auto go_on = [&](std::unique_ptr<TrainingEngine> engine, const hsm::TemporaryFolder& from) {
    restore_from(from, *engine);
    train_steps(*engine, 3, 6);
    return engine;
  };
  expect_same_state(*go_on(device_engine(config_, pool_), of_device), *device, 0);
  expect_same_state(*go_on(device_engine(config_, pool_), of_cpu), *cpu, 2e-5);
  expect_same_state(*go_on(cpu_engine(config_, pool_), of_device), *cpu, 2e-5);
}

TEST_P(DeviceEngine, ANormThatIsNotFiniteChangesNothing) {
  const auto device = device_engine(config_, pool_);
  train_step(*device, 0);
  const EngineState before = state_of(*device);
  const Batch batch = engine_window(1);
  StepOptions bad = engine_step(batch, 1);
  bad.scale = std::numeric_limits<float>::infinity();
  device->begin_step(batch, bad);
  const StepResult result = device->finish_step();
  EXPECT_FALSE(std::isfinite(result.norm));
  EXPECT_FALSE(result.skipped);
  for (const auto& [name, values] : state_of(*device)) {
    const bool moves_with_the_window = name == "carried_state" || name.starts_with("optimizer.stamps");
    if (moves_with_the_window) continue;
    EXPECT_EQ(values, before.at(name)) << name;
  }
}

/// What AWD-LSTM adds, in every step; see DeviceEngineAveraging for the mean of its weights.
void drop_weights_and_penalize(Config& config) {
  drop_everywhere(config);
  config.model.dropout.weight = 0.5;
  config.model.dropout.locked = true;
  config.model.regularization = {2, 1};
}

void optimize_with(Config& config, const char* name, double decay) {
  config.train.optimizer.name = name;
  config.train.optimizer.weight_decay = decay;
}

const std::vector<EngineCase> kCases{
    {"plain", [](Config&) {}},
    {"gru", [](Config& c) { c.model.cell = "gru"; }},
    {"rnn_relu", [](Config& c) { c.model.cell = "rnn_relu"; }},
    {"rnn_tanh_without_clipping",
     [](Config& c) {
       c.model.cell = "rnn_tanh";
       c.train.clip_norm = 0;
     }},
    {"dropout", drop_everywhere},
    {"tied_locked_dropout",
     [](Config& c) {
       drop_everywhere(c);
       c.model.dropout.locked = true;
       c.model.tie_embeddings = true;
       c.model.hidden = {9, 6};
     }},
    {"tied_projected", [](Config& c) { c.model.tie_embeddings = true; }},
    {"pieces",
     [](Config& c) {
       drop_everywhere(c);
       c.train.micro_batches = 3;
       c.train.head_chunk = 4;
     }},
    {"tied_pieces",
     [](Config& c) {
       drop_everywhere(c);
       c.model.tie_embeddings = true;
       c.train.micro_batches = 2;
       c.train.head_chunk = 7;
     }},
    {"weight_drop", [](Config& c) { c.model.dropout.weight = 0.5; }},
    {"gru_weight_drop",
     [](Config& c) {
       c.model.cell = "gru";
       c.model.dropout.weight = 0.3;
     }},
    {"activation_penalty", [](Config& c) { c.model.regularization.activation = 2; }},
    {"temporal_penalty", [](Config& c) { c.model.regularization.temporal = 2; }},
    {"awd", drop_weights_and_penalize},
    {"tied_projected_awd_in_pieces",
     [](Config& c) {
       drop_weights_and_penalize(c);
       c.model.tie_embeddings = true;
       c.train.micro_batches = 3;
       c.train.head_chunk = 4;
     }},
    {"asgd", [](Config& c) { optimize_with(c, "asgd", 0); }},
    {"momentum", [](Config& c) { optimize_with(c, "momentum", 0.01); }},
    {"adagrad", [](Config& c) { optimize_with(c, "adagrad", 0); }},
    {"tied_adagrad_with_decay",
     [](Config& c) {
       optimize_with(c, "adagrad", 0.01);
       c.model.tie_embeddings = true;
     }},
    {"adam", [](Config& c) { optimize_with(c, "adam", 0); }},
    {"adamw", [](Config& c) { optimize_with(c, "adamw", 0.01); }},
};
INSTANTIATE_TEST_SUITE_P(Models, DeviceEngine, testing::ValuesIn(kCases),
                         [](const auto& instance) { return instance.param.name; });

// ---- the mean of the weights

std::vector<double> weights_of(TrainingEngine& engine) {
  const WeightView view = engine.weights();
  const std::vector<TensorSpec> specs = parameter_specs(engine.shape());
  std::vector<double> weights;
  for (size_t i = 0; i < specs.size(); ++i) {
    int64_t count = 1;
    for (const int64_t extent : specs[i].shape) count *= extent;
    weights.insert(weights.end(), view.tensors[i], view.tensors[i] + count);
  }
  return weights;
}

class DeviceEngineAveraging : public testing::TestWithParam<EngineCase> {
 protected:
  /// Steps 0 and 1, then with averaging up to `last`.
  void train_until(int64_t last, TrainingEngine& engine) {
    train_steps(engine, 0, 2);
    engine.start_averaging();
    train_steps(engine, 2, last);
  }

  /// Scores of some words, plain and scaled, are those of weights() on the CPU.
  void expect_scores_of_weights(TrainingEngine& device) {
    const std::vector<int32_t> words{3, 1, 4, 1, 5, 9, 2, 6};
    const std::vector<int64_t> lengths{static_cast<int64_t>(words.size())};
    std::vector<TokenScore> expected(words.size());
    std::vector<TokenScore> scores(words.size());
    const auto check = [&](const LogitScales& scales) {
      ScaledWeights mean(device.shape(), device.layout(), device.weights(), scales);
      make_cpu_scorer(device.shape(), device.layout(), std::move(mean), 0, pool_)
          ->score_sentences(words, lengths, expected);
      device.make_scorer(0, scales)->score_sentences(words, lengths, scores);
      for (size_t i = 0; i < words.size(); ++i) {
        EXPECT_NEAR(scores[i].root, expected[i].root, 5e-5) << i;
        EXPECT_NEAR(scores[i].leaf, expected[i].leaf, 5e-5) << i;
      }
    };
    check({});
    if (!device.shape().tied) check({0.75, 1.5});
    check({});
  }

  const Config config_ = GetParam().config();
  ThreadPool pool_{1};
};

TEST_P(DeviceEngineAveraging, IsTheCpus) {
  const auto cpu = cpu_engine(config_, pool_);
  const auto device = device_engine(config_, pool_);
  for (TrainingEngine* engine : {cpu.get(), device.get()}) {
    EXPECT_FALSE(engine->averaging());
    train_until(7, *engine);
    EXPECT_TRUE(engine->averaging());
  }
  expect_same_state(*device, *cpu, 2e-5);
  EXPECT_EQ(state_of(*device).at("average.steps"), std::vector<double>{5});
  expect_near(weights_of(*device), weights_of(*cpu), 2e-5, "mean");
  EXPECT_NE(weights_of(*device), weights_of(*device_engine(config_, pool_)));
}

TEST_P(DeviceEngineAveraging, CountsForValidation) {
  const auto device = device_engine(config_, pool_);
  train_until(6, *device);
  expect_scores_of_weights(*device);
}

TEST_P(DeviceEngineAveraging, ValidatesTheWeightsThemselvesBeforeItBegins) {
  const auto device = device_engine(config_, pool_);
  train_steps(*device, 0, 2);
  const auto before = state_of(*device);
  expect_scores_of_weights(*device);
  EXPECT_EQ(state_of(*device), before);
}

TEST_P(DeviceEngineAveraging, GoesOnFromEitherKindOfCheckpoint) {
  for (const int64_t saved : {2, 3, 5}) {
    const auto cpu = cpu_engine(config_, pool_);
    const auto device = device_engine(config_, pool_);
    const hsm::TemporaryFolder of_cpu;
    const hsm::TemporaryFolder of_device;
    train_until(saved, *cpu);
    train_until(saved, *device);
    save_after(saved, *cpu, of_cpu);
    save_after(saved, *device, of_device);
    train_steps(*cpu, saved, 7);
    train_steps(*device, saved, 7);
    const auto go_on = [&](std::unique_ptr<TrainingEngine> engine, const hsm::TemporaryFolder& from) {
      restore_from(from, *engine);
      EXPECT_TRUE(engine->averaging());
      train_steps(*engine, saved, 7);
      return engine;
    };
    expect_same_state(*go_on(device_engine(config_, pool_), of_device), *device, 0);
    expect_same_state(*go_on(device_engine(config_, pool_), of_cpu), *cpu, 2e-5);
    expect_same_state(*go_on(cpu_engine(config_, pool_), of_device), *cpu, 2e-5);
  }
}

INSTANTIATE_TEST_SUITE_P(Models, DeviceEngineAveraging,
                         testing::Values(EngineCase{"plain", [](Config& c) { optimize_with(c, "asgd", 0); }},
                                         EngineCase{"tied_awd_with_decay",
                                                    [](Config& c) {
                                                      optimize_with(c, "asgd", 0.01);
                                                      drop_weights_and_penalize(c);
                                                      c.model.tie_embeddings = true;
                                                    }}),
                         [](const auto& instance) { return instance.param.name; });

// ---- 16 bits

void expect_nearly_the_same(const char* precision, const std::function<void(Config&)>& change) {
  Config config = EngineCase{"", change}.config();
  ThreadPool pool(1);
  const auto exact = device_engine(config, pool);
  config.train.precision = precision;
  const auto rounded = device_engine(config, pool);
  const double tolerance = config.train.precision == "bf16" ? 2e-2 : 3e-3;
  for (int64_t number = 0; number < 5; ++number) {
    const StepResult expected = train_step(*exact, number);
    const StepResult result = train_step(*rounded, number);
    EXPECT_FALSE(result.skipped);
    EXPECT_NEAR(result.loss, expected.loss, tolerance * expected.loss) << precision;
    EXPECT_NEAR(result.norm, expected.norm, 3 * tolerance * expected.norm) << precision;
  }
  const EngineState state = state_of(*rounded);
  for (const auto& [name, values] : state_of(*exact)) {
    if (name.starts_with("parameter.")) expect_near(state.at(name), values, tolerance, name);
  }
}

TEST(DeviceEngine16, TrainsNearlyAsWithThirtyTwo) {
  for (const char* precision : {"bf16", "fp16"}) {
    expect_nearly_the_same(precision, drop_everywhere);
    expect_nearly_the_same(precision, drop_weights_and_penalize);
  }
}

TEST(DeviceEngine16, AnOverflowIsSkippedAndLowersTheScale) {
  const EngineCase fp16{"", [](Config& c) { c.train.precision = "fp16"; }};
  ThreadPool pool(1);
  const auto engine = device_engine(fp16.config(), pool);
  const EngineState before = state_of(*engine);
  const auto large_step = [&](int64_t number) {
    const Batch batch = engine_window(number);
    StepOptions large = engine_step(batch, number);
    large.scale *= 1000;  // gradients beyond 65504 at the first scale
    engine->begin_step(batch, large);
    return engine->finish_step();
  };
  int64_t number = 0;
  while (number < 30 && large_step(number).skipped) {
    const EngineState after = state_of(*engine);
    EXPECT_EQ(after.at("parameter.head.word.weight"), before.at("parameter.head.word.weight"));
    EXPECT_EQ(after.at("parameter.rnn.weight_hh_l0"), before.at("parameter.rnn.weight_hh_l0"));
    ++number;
  }
  EXPECT_GT(number, 0) << "nothing overflowed";
  EXPECT_LT(number, 30) << "no scale was small enough";
  EXPECT_NE(state_of(*engine).at("parameter.head.word.weight"), before.at("parameter.head.word.weight"));
  EXPECT_LT(state_of(*engine).at("loss_scale")[0], before.at("loss_scale")[0]);
}

// The first update of Adam is as long as the learning rate in every direction, however many steps overflowed
// before it; were they counted, it would be shorter.
TEST(DeviceEngine16, ASkippedStepIsNoneToAdamsBiasCorrection) {
  const EngineCase fp16{"", [](Config& c) {
                          c.train.precision = "fp16";
                          c.train.optimizer.name = "adam";
                          c.train.clip_norm = 0;
                        }};
  ThreadPool pool(1);
  const auto engine = device_engine(fp16.config(), pool);
  const EngineState before = state_of(*engine);
  int64_t number = 0;
  bool skipped = true;
  double rate = 0;
  for (; number < 30 && skipped; ++number) {
    const Batch batch = engine_window(number);
    StepOptions large = engine_step(batch, number);
    large.scale *= 1000;
    rate = large.learning_rate;
    engine->begin_step(batch, large);
    skipped = engine->finish_step().skipped;
  }
  ASSERT_FALSE(skipped);
  ASSERT_GT(number, 3);
  EXPECT_EQ(state_of(*engine).at("optimizer.updates"), std::vector<double>{1});
  const std::vector<double>& old = before.at("parameter.head.cluster.bias");
  const std::vector<double> now = state_of(*engine).at("parameter.head.cluster.bias");
  for (size_t i = 0; i < old.size(); ++i) EXPECT_NEAR(std::abs(now[i] - old[i]), rate, 1e-3 * rate) << i;

  // The CPU counts on from there.
  const hsm::TemporaryFolder folder;
  save_after(number, *engine, folder);
  Config config = fp16.config();
  config.train.precision = "fp32";
  const auto cpu = cpu_engine(config, pool);
  restore_from(folder, *cpu);
  train_step(*cpu, number);
  EXPECT_EQ(state_of(*cpu).at("optimizer.updates"), std::vector<double>{2});
}

}  // namespace
}  // namespace hsm::test
