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

}  // namespace

TrainingEngineFactory choose_training_engine(const Config& config) {
  const std::string& device = config.runtime.device;
  const std::optional<int> gpu = kernels::choose_device(device);
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
