#pragma once
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "gpu/engine/device_engine.h"
#include "train/training_engine.h"

namespace hsm::test {

/// A small model with a change to its configuration, and the windows that it is trained on.
struct EngineCase {
  std::string name;
  std::function<void(Config&)> change;

  [[nodiscard]] Config config() const;
};

constexpr int64_t kEngineStreams = 5;
constexpr int64_t kEngineWords = 31;

HeadLayout engine_layout();

Batch engine_window(int64_t number);
StepOptions engine_step(const Batch& batch, int64_t number);

/// Dropout of every kind.
void drop_everywhere(Config& config);

std::unique_ptr<TrainingEngine> cpu_engine(const Config& config, ThreadPool& pool);
/// The GPU that HSM_TEST_DEVICE ("cuda", "cuda:N") in the environment asks for: scripts/gpu-check sets it.
std::optional<int> test_device();
/// The device's engine on that GPU, else in host memory, with the device's kernels run there.
std::unique_ptr<TrainingEngine> device_engine(const Config& config, ThreadPool& pool);

/// The same for a model of its own; a TrainingEngineFactory.
std::unique_ptr<TrainingEngine> make_test_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                 ThreadPool& pool);

StepResult train_step(TrainingEngine& engine, int64_t number);

/// What a checkpoint would hold, as numbers.
using EngineState = std::map<std::string, std::vector<double>>;
EngineState state_of(TrainingEngine& engine);

void expect_near(const std::vector<double>& values, const std::vector<double>& expected, double tolerance,
                 const std::string& name);
/// Parameters, moments and states alike within `tolerance` of their norms.
void expect_same_state(TrainingEngine& engine, TrainingEngine& other, double tolerance);

}  // namespace hsm::test
