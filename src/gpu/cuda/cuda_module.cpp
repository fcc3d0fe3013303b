// What libhsm_cuda.so exports.
#include <ATen/Context.h>
#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/cuda/CUDAStream.h>

#include <algorithm>
#include <cstdlib>
#include <string>
#include <utility>

#include "gpu/cuda/guarded_engine.h"
#include "gpu/engine/decode_device.h"
#include "gpu/engine/device_engine.h"
#include "gpu/engine/device_text_scorer.h"
#include "gpu/gpu_module.h"
#include "kernels/device/cuda_decode_kernels.h"

namespace hsm {
namespace {

using kernels::device::Precision;

/// LibTorch's switches: sums of one order, and tf32 only where it is asked for (it is on by default).
void set_arithmetic(Precision precision) {
  at::Context& context = at::globalContext();
  const bool tf32 = precision == Precision::tf32;
  context.setDeterministicCuDNN(true);
  context.setBenchmarkCuDNN(false);
  context.setAllowTF32CuDNN(tf32);
  context.setAllowTF32CuBLAS(tf32);
  context.setAllowFP16ReductionCuBLAS(false);
  context.setAllowBF16ReductionCuBLAS(false);
}

void open_device(const GpuOptions& options) {
  // Read when cuBLAS starts: workspaces that make its sums repeatable.
  ::setenv("CUBLAS_WORKSPACE_CONFIG", ":4096:2", 0);
  at::globalContext().lazyInitDevice(at::kCUDA);
  const auto index = static_cast<c10::DeviceIndex>(options.device);
  c10::cuda::set_device(index);
  if (options.memory_limit == 0) return;
  size_t free = 0;
  size_t total = 0;
  C10_CUDA_CHECK(cudaMemGetInfo(&free, &total));
  c10::cuda::CUDACachingAllocator::setMemoryFraction(
      std::min(1.0, static_cast<double>(options.memory_limit) / static_cast<double>(total)), index);
}

class CudaModule final : public GpuModule {
 public:
  [[nodiscard]] std::unique_ptr<TrainingEngine> make_training_engine(
      const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool,
      const GpuOptions& options) const override {
    return make_guarded(
        [&] {
          const Precision precision = parse_precision(config.train.precision);
          open_device(options);
          set_arithmetic(precision);
          const auto stream =
              c10::cuda::getCurrentCUDAStream(static_cast<c10::DeviceIndex>(options.device)).stream();
          EnginePlace place;
          place.cuda_device = options.device;
          place.precision = precision;
          place.kernels = kernels::device::make_cuda_kernels(precision, options.device, stream);
          place.float_kernels = kernels::device::make_cuda_kernels(Precision::fp32, options.device, stream);
          return make_device_engine(config, std::move(shape), std::move(layout), pool, std::move(place));
        },
        options);
  }

  [[nodiscard]] std::unique_ptr<TextScorer> make_text_scorer(const ModelShape& shape,
                                                             const HeadLayout& layout,
                                                             const WeightView& weights,
                                                             int32_t end_of_sentence,
                                                             const GpuOptions& options) const override {
    return make_guarded_scorer(
        [&] {
          open_device(options);
          set_arithmetic(Precision::fp32);
          const auto index = static_cast<c10::DeviceIndex>(options.device);
          return make_device_text_scorer(
              shape, layout, weights, at::Device(at::kCUDA, index),
              kernels::device::make_cuda_kernels(Precision::fp32, options.device,
                                                 c10::cuda::getCurrentCUDAStream(index).stream()),
              end_of_sentence);
        },
        options);
  }

  [[nodiscard]] std::unique_ptr<DecodeDevice> make_decode_device(const ModelShape& shape,
                                                                 const HeadLayout& layout,
                                                                 const WeightView& weights,
                                                                 int32_t end_of_sentence,
                                                                 const GpuOptions& options) const override {
    return make_guarded_decode_device(
        [&] {
          open_device(options);
          const auto index = static_cast<c10::DeviceIndex>(options.device);
          return hsm::make_decode_device(
              shape, layout, weights, end_of_sentence, at::Device(at::kCUDA, index),
              kernels::device::make_cuda_decode_kernels(c10::cuda::getCurrentCUDAStream(index).stream()));
        },
        options);
  }
};

}  // namespace
}  // namespace hsm

extern "C" {

const char* hsm_gpu_module_version() {
  static const std::string version = hsm::gpu_module_version();
  return version.c_str();
}

const hsm::GpuModule* hsm_gpu_module() {
  static const hsm::CudaModule module;
  return &module;
}
}
