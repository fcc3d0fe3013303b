#include "gpu/training_device.h"

#include <spdlog/spdlog.h>

#include <optional>
#include <string>
#include <utility>

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
  if (const std::optional<int> gpu = kernels::choose_device(device)) {
    const GpuModule& module = open_gpu_module();
    spdlog::info("training on cuda:{} in {}", *gpu, config.train.precision);
    return on_gpu(module, {*gpu, config.runtime.gpu_memory_limit});
  }
  if (device == "auto") {
    const std::string note = idle_gpu_note(kernels::find_cuda_devices());
    if (!note.empty()) spdlog::info("{}", note);
  }
  check_cpu_precision(config.train);
  return make_cpu_engine;
}

std::string idle_gpu_note(const kernels::CudaSurvey& survey) {
  const std::optional<int> gpu = kernels::usable_device(survey);
  if (!gpu) return {};
  const std::string name = "cuda:" + std::to_string(*gpu);
  return name + " (" + survey.devices[static_cast<size_t>(*gpu)].name +
         ") is there, and training runs on the CPU. --device " + name +
         " trains there; scripts/gpu-check says first whether that works on this machine";
}

}  // namespace hsm
