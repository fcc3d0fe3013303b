#include "gpu/training_device.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <utility>

#include "base/error.h"
#include "gpu/gpu_module.h"
#include "kernels/cuda_device.h"

namespace hsm {
namespace {

TrainingEngineFactory on_gpu(const GpuModule& module, const GpuOptions& options) {
  return [&module, options](const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool) {
    return module.make_training_engine(config, std::move(shape), std::move(layout), pool, options);
  };
}

// A setting that only the processor's engine knows, or null.
const char* processor_setting(const Config& config) {
  if (config.model.dropout.weight > 0) return "model.dropout.weight";
  if (config.model.regularization.activation > 0) return "model.regularization.activation";
  if (config.model.regularization.temporal > 0) return "model.regularization.temporal";
  if (config.train.optimizer.name == "asgd") return "train.optimizer.name";
  return nullptr;
}

}  // namespace

TrainingEngineFactory choose_training_engine(const Config& config) {
  const std::string& device = config.runtime.device;
  std::optional<int> gpu = kernels::choose_device(device);
  if (const char* setting = processor_setting(config); gpu && setting != nullptr) {
    const std::string problem = std::string(setting) + ": can't be done on a GPU yet";
    if (device != "auto") throw UsageError(problem + "; expected runtime.device \"cpu\" with it");
    spdlog::warn("{}. Training runs on the CPU", problem);
    gpu.reset();
  }
  if (gpu) {
    if (const GpuModule* module = open_gpu_module(device, "Training")) {
      spdlog::info("training on cuda:{} in {}", *gpu, config.train.precision);
      return on_gpu(*module, {*gpu, config.runtime.gpu_memory_limit});
    }
  }
  check_cpu_precision(config.train);
  return make_cpu_engine;
}

}  // namespace hsm
