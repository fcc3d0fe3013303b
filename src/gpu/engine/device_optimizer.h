#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>

#include "config/config.h"
#include "gpu/engine/device_numbers.h"
#include "gpu/engine/device_parameters.h"
#include "gpu/engine/window_rows.h"
#include "kernels/device/device_kernels.h"
#include "kernels/optimizer.h"

namespace hsm {

/// What the passes of a window leave beside the dense gradients; float32, on the device.
struct WindowGradients {
  at::Tensor embedding;  ///< [rows, embedding]; undefined when tied
  at::Tensor word;       ///< [rows of the head or more, dim]
  at::Tensor word_bias;  ///< [likewise]
  at::Tensor losses;     ///< of each pass of the head
};

/// The optimiser on the device: takes the norm of all gradients, clips, and updates. It only launches:
/// whether a step is an update, and how many there were, is known on the device alone until the step is
/// finished.
class DeviceOptimizer {
 public:
  /// `kernels` and `parameters` outlive it.
  DeviceOptimizer(const TrainConfig& config, kernels::device::DeviceKernels& kernels,
                  DeviceParameters& parameters);

  /// A step from gradients that are `loss_scale` times too large.
  void step(const WindowGradients& gradients, const WindowRows& rows, const DeviceNumbers& numbers,
            double learning_rate, double loss_scale);

  /// Of the latest step, in the device's memory; as bytes, too.
  [[nodiscard]] const kernels::device::StepOutcome* outcome() const;
  [[nodiscard]] const at::Tensor& outcome_bytes() const noexcept { return outcome_; }
  /// Says that so many updates have been made.
  void stand_at(int64_t updates);

 private:
  void clip(const WindowGradients& gradients, int64_t head_rows, double learning_rate, double loss_scale);
  void update(const WindowGradients& gradients, const WindowRows& rows, const DeviceNumbers& numbers,
              double learning_rate);

  kernels::OptimizerOptions options_;
  double clip_norm_;
  bool all_rows_;  // rows without a gradient move, too
  kernels::device::DeviceKernels& kernels_;
  DeviceParameters& parameters_;
  at::Tensor outcome_, norm_scratch_, squares_;
};

}  // namespace hsm
