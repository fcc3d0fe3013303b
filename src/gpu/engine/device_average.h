#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "gpu/engine/device_parameters.h"
#include "kernels/device/device_kernels.h"
#include "train/checkpoint.h"
#include "train/weight_average.h"

namespace hsm {

/// The mean of the weights over updates, on the device, where it is kept as WeightAverage keeps it. Every
/// row is averaged after every update. `updates` is always the number that the parameters have behind them.
class DeviceAverage {
 public:
  /// `parameters`, `pool` and `kernels` outlive it.
  DeviceAverage(DeviceParameters& parameters, ThreadPool& pool, kernels::device::DeviceKernels& kernels);

  void start(int64_t updates);
  [[nodiscard]] bool running() const noexcept { return image_.running(); }
  /// Whether there is a mean: after the first update since start().
  [[nodiscard]] bool empty(int64_t updates) const noexcept { return !running() || updates == before_; }

  /// Takes in the weights after a step, of which `outcome` tells whether it was an update.
  void add(const kernels::device::StepOutcome* outcome);
  /// float32 on the device, in the order of the parameters.
  [[nodiscard]] const std::vector<at::Tensor>& means() const noexcept { return means_; }
  /// The same in host memory, brought up to date; valid until the next call.
  WeightView weights(int64_t updates);

  /// Brings what is appended up to date in host memory; valid as weights() is.
  void append_state(int64_t updates, std::vector<StateTensor>& tensors);
  void restore(const Checkpoint& checkpoint, int64_t updates);

 private:
  void allocate();
  void download(int64_t updates);

  DeviceParameters& parameters_;
  kernels::device::DeviceKernels& kernels_;
  WeightAverage image_;  // in host memory
  std::vector<at::Tensor> means_;
  int64_t before_ = 0;  // updates made before the first that the mean is over
};

}  // namespace hsm
