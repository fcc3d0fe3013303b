// A whole run of the recipe with AWD-LSTM's regularisation, made small: the device's engine beside the CPU's.
#include <gtest/gtest.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "config/config_file.h"
#include "gpu/engines.h"
#include "model/safetensors.h"
#include "train/tiny_run.h"

namespace hsm::test {
namespace {

/// configs/awd-ptb.json with sizes that fit a few hundred words, and a trigger that comes within its steps.
void use_recipe(Config& config) {
  const Config recipe = load_config(std::filesystem::path(HSM_SOURCE_DIR) / "configs/awd-ptb.json");
  ASSERT_EQ(recipe.train.optimizer.name, "asgd");
  ASSERT_GT(recipe.model.dropout.weight, 0);
  ASSERT_GT(recipe.model.regularization.activation, 0);
  ASSERT_GT(recipe.model.regularization.temporal, 0);
  config.model = recipe.model;
  config.model.hidden = {13, 11, 8};
  config.model.embedding = 8;
  config.train.optimizer = recipe.train.optimizer;
  config.train.optimizer.learning_rate = 10;
  config.train.optimizer.average_patience = 1;
  config.train.clip_norm = recipe.train.clip_norm;
  config.train.bptt_jitter = recipe.train.bptt_jitter;
  config.train.epochs = 4;
  config.train.validate_every = {0, 4, 0};
  config.train.keep_weights = "last";
}

std::vector<double> perplexities(const TinyRun& run) {
  std::vector<double> values;
  for (const auto& event : run.events()) {
    for (const char* key : {"train_perplexity", "valid_perplexity", "test_perplexity"}) {
      if (event.contains(key) && !event[key].is_null()) values.push_back(event[key]);
    }
  }
  return values;
}

std::map<std::string, std::vector<double>> tensors(const std::filesystem::path& file) {
  std::map<std::string, std::vector<double>> result;
  const SafetensorsFile opened(file);
  for (const TensorRef& tensor : opened.tensors()) {
    if (tensor.dtype != DType::f32) continue;
    const auto* values = static_cast<const float*>(tensor.data);
    result[tensor.name].assign(values, values + tensor.count());
  }
  return result;
}

void expect_same_run(const TinyRun& run, const TinyRun& expected) {
  expect_near(perplexities(run), perplexities(expected), 1e-5, "perplexities");
  const auto weights = tensors(run.model());
  for (const auto& [name, values] : tensors(expected.model())) {
    expect_near(weights.at(name), values, 4e-5, name);
  }
}

/// Steps over which the newest checkpoint's mean is; 0 without.
int64_t averaged_steps(const TinyRun& run) {
  const auto checkpoint = CheckpointStore(run.checkpoints(), 1).load_newest();
  const TensorRef* steps = checkpoint->file.find("average.steps");
  return steps == nullptr ? 0 : *static_cast<const int64_t*>(steps->data);
}

class DeviceEngineAwdRun : public testing::Test {
 protected:
  void SetUp() override {
    for (TinyRun* run : {&cpu_, &device_}) use_recipe(run->config);
    device_.make_engine = make_test_engine;
    const auto count = [&] {
      ++asked_;
      return false;
    };
    ASSERT_EQ(train(cpu_.config, false, {count, [] { return false; }}, make_cpu_engine), Outcome::finished);
    ASSERT_GT(averaged_steps(cpu_), 5);  // the mean counts, but not from the start
    const int64_t steps = cpu_.events("done").back()["steps"];
    ASSERT_GT(steps, averaged_steps(cpu_) + 5);
  }

  TinyRun cpu_;
  TinyRun device_;
  int64_t asked_ = 0;  // whether to stop: while reading, and once before each step
};

TEST_F(DeviceEngineAwdRun, IsTheCpus) {
  ASSERT_EQ(device_.train(), Outcome::finished);
  EXPECT_EQ(averaged_steps(device_), averaged_steps(cpu_));
  expect_same_run(device_, cpu_);
}

TEST_F(DeviceEngineAwdRun, GoesFromDeviceToDevice) {
  ASSERT_EQ(device_.train_until(asked_ - averaged_steps(cpu_) - 3), Outcome::stopped);
  EXPECT_EQ(averaged_steps(device_), 0);
  device_.make_engine = make_cpu_engine;
  ASSERT_EQ(device_.train_until(6, true), Outcome::stopped);
  EXPECT_GT(averaged_steps(device_), 0);
  device_.make_engine = make_test_engine;
  ASSERT_EQ(device_.train(true), Outcome::finished);
  expect_same_run(device_, cpu_);
}

}  // namespace
}  // namespace hsm::test
