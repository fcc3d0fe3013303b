#pragma once
#include <memory>

#include "kernels/device/cuda_kernels.h"
#include "train/training_engine.h"

namespace hsm {

/// Where a device engine computes.
struct EnginePlace {
  int cuda_device = -1;  ///< negative: in host memory, as the tests do
  kernels::device::Precision precision = kernels::device::Precision::fp32;
  std::unique_ptr<kernels::device::DeviceKernels> kernels;  ///< launching on the device's current stream
  std::shared_ptr<kernels::device::DeviceKernels> float_kernels;  ///< the same in float32, for gradients of
                                                                  ///< parameters and for validation
};

/// UsageError naming train.precision for one that is not known.
kernels::device::Precision parse_precision(const std::string& name);

/// An engine that keeps everything on a device: parameters, moments, states. A step copies the window's rows
/// there and launches; nothing is read back but its outcome, a step later, so the device never waits for
/// the host. Weights are float32 there; with 16-bit elements the products read a copy, and with fp16 the loss
/// is scaled. `pool` outlives it.
std::unique_ptr<TrainingEngine> make_device_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                   ThreadPool& pool, EnginePlace place);

}  // namespace hsm
