#include "gpu/engines.h"

#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <utility>

#include "base/vector_norm.h"
#include "gpu/gpu_module.h"
#include "kernels/cuda_device.h"
#include "kernels/device/host_kernels.h"

namespace hsm::test {
namespace {

double number_at(const StateTensor& tensor, int64_t i) {
  if (tensor.dtype == DType::f32) return static_cast<const float*>(tensor.data)[i];
  if (tensor.dtype == DType::f64) return static_cast<const double*>(tensor.data)[i];
  return static_cast<double>(static_cast<const int64_t*>(tensor.data)[i]);
}

}  // namespace

HeadLayout engine_layout() {
  WordClasses classes;
  classes.clusters = 5;  // of 1, 3, 7, 7 and 8 words, ids spread over them, beside 5 at the root
  for (int32_t id = 0; id < kEngineWords; ++id) {
    const int32_t slot = (id * 7) % kEngineWords;
    classes.cluster_of.push_back(slot < 5    ? kShortlist
                                 : slot < 6  ? 0
                                 : slot < 9  ? 1
                                 : slot < 16 ? 2
                                 : slot < 23 ? 3
                                             : 4);
  }
  return make_layout(classes);
}

Config EngineCase::config() const {
  Config config;
  config.model.hidden = {9, 7};
  config.model.embedding = 6;
  config.model.init_range = 0.5;
  config.model.recurrent_init_range = 0.45;
  config.train.seed = 5;
  config.train.clip_norm = 0.4;
  change(config);
  return config;
}

Batch engine_window(int64_t number) {
  Batch batch;
  batch.steps = 6 - number % 2;
  batch.streams = kEngineStreams;
  batch.starts = number == 0 || number == 3;
  for (int64_t i = 0; i < batch.steps * batch.streams; ++i) {
    batch.inputs.push_back(static_cast<int32_t>((i * 5 + number * 2) % 11));
    const bool padding = i % batch.streams == 2 && i >= batch.streams;
    batch.targets.push_back(padding ? kNoTarget : static_cast<int32_t>((i * 11 + number * 3) % kEngineWords));
    if (!padding) ++batch.target_count;
  }
  return batch;
}

StepOptions engine_step(const Batch& batch, int64_t number) {
  return {{0, number, number},
          1.0F / static_cast<float>(batch.target_count),
          0.2 / static_cast<double>(1 + number)};
}

void drop_everywhere(Config& config) {
  config.model.dropout = {.input = 0.3, .hidden = 0.4, .output = 0.2, .embedding = 0.2, .locked = false};
}

std::unique_ptr<TrainingEngine> cpu_engine(const Config& config, ThreadPool& pool) {
  const HeadLayout head = engine_layout();
  return make_cpu_engine(config, make_shape(config.model, kEngineWords, head.clusters()), head, pool);
}

std::unique_ptr<TrainingEngine> device_engine(const Config& config, ThreadPool& pool) {
  const HeadLayout head = engine_layout();
  return make_test_engine(config, make_shape(config.model, kEngineWords, head.clusters()), head, pool);
}

std::unique_ptr<TrainingEngine> make_test_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                 ThreadPool& pool) {
  if (const std::optional<int> device = test_device()) {
    const auto library = std::filesystem::path(HSM_PROGRAM).parent_path() / "libhsm_cuda.so";
    return load_gpu_module(library).make_training_engine(config, std::move(shape), std::move(layout), pool,
                                                         {*device, 0});
  }
  EnginePlace place;
  place.precision = parse_precision(config.train.precision);
  place.kernels = std::make_unique<HostKernels>(kernels::device::element_type(place.precision));
  place.float_kernels = std::make_unique<HostKernels>(kernels::device::ElementType::f32);
  return make_device_engine(config, std::move(shape), std::move(layout), pool, std::move(place));
}

StepResult train_step(TrainingEngine& engine, int64_t number) {
  const Batch batch = engine_window(number);
  engine.begin_step(batch, engine_step(batch, number));
  return engine.finish_step();
}

std::optional<int> test_device() {
  const char* device = std::getenv("HSM_TEST_DEVICE");
  return device == nullptr ? std::nullopt : kernels::choose_device(device);
}

EngineState state_of(TrainingEngine& engine) {
  std::vector<StateTensor> tensors;
  engine.append_state(tensors);
  EngineState result;
  for (const StateTensor& tensor : tensors) {
    int64_t count = 1;
    for (const int64_t extent : tensor.shape) count *= extent;
    std::vector<double>& values = result[tensor.name];
    for (int64_t i = 0; i < count; ++i) values.push_back(number_at(tensor, i));
  }
  return result;
}

void expect_near(const std::vector<double>& values, const std::vector<double>& expected, double tolerance,
                 const std::string& name) {
  ASSERT_EQ(values.size(), expected.size()) << name;
  std::vector<double> difference;
  for (size_t i = 0; i < expected.size(); ++i) difference.push_back(values[i] - expected[i]);
  // A GPU adds in another order, and its exponentials round otherwise.
  if (test_device()) tolerance *= 25;
  EXPECT_LE(norm(difference), tolerance * (norm(expected) + 1e-6)) << name;
}

void expect_same_state(TrainingEngine& engine, TrainingEngine& other, double tolerance) {
  engine.settle();
  other.settle();
  const EngineState state = state_of(engine);
  for (const auto& [name, values] : state_of(other)) {
    if (name == "optimizer.learning_rates") continue;  // kept for rows that lag behind
    const auto found = state.find(name);
    ASSERT_NE(found, state.end()) << name;
    expect_near(found->second, values, tolerance, name);
  }
}

}  // namespace hsm::test
