#pragma once
#include <memory>

#include "kernels/device/device_kernels.h"
#include "kernels/device/launch.h"

namespace hsm::kernels::device {

/// Arithmetic of products, as train.precision names it.
enum class Precision { fp32, tf32, bf16, fp16 };

/// What activations are stored in.
constexpr ElementType element_type(Precision precision) {
  return precision == Precision::bf16   ? ElementType::bf16
         : precision == Precision::fp16 ? ElementType::f16
                                        : ElementType::f32;
}

/// The kernels on a CUDA device, launched on `stream`, which belongs to it and outlives the object. Errors of
/// CUDA: ResourceError when the device is out of memory, else Error with ExitCode::fault.
std::unique_ptr<DeviceKernels> make_cuda_kernels(Precision precision, int device, Stream stream);

}  // namespace hsm::kernels::device
