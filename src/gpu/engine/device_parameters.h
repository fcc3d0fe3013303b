#pragma once
#include <ATen/core/Tensor.h>

#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "model/model_shape.h"
#include "model/training_model.h"
#include "train/optimizer.h"

namespace hsm {

/// A parameter on the device.
struct DeviceParameter {
  std::string name;
  at::Tensor value;    ///< float32
  at::Tensor compute;  ///< what products read: `value` itself, or a copy of fewer bits
  at::Tensor first;    ///< moments, as the optimiser has them; undefined where it has none
  at::Tensor second;
  at::Tensor gradient;  ///< float32, part of DeviceParameters::gradients(); undefined when sparse
  bool sparse = false;

  [[nodiscard]] int64_t width() const { return value.dim() > 1 ? value.size(1) : 1; }
  /// Where the update puts the copy; null when there is none.
  [[nodiscard]] void* copy() const { return compute.is_same(value) ? nullptr : compute.data_ptr(); }
};

/// All parameters on the device in the order of parameter_specs(), and their image in host memory.
class DeviceParameters {
 public:
  /// Drawn as TrainingModel does. `options`: device and type of what products read.
  DeviceParameters(const Config& config, const ModelShape& shape, ThreadPool& pool,
                   const at::TensorOptions& options);

  [[nodiscard]] std::vector<DeviceParameter>& all() noexcept { return all_; }
  /// All dense gradients in one piece.
  [[nodiscard]] at::Tensor& gradients() noexcept { return gradients_; }
  /// The values in host memory, brought up to date.
  WeightView weights();
  /// Names, shapes and values in host memory, in the order of all().
  [[nodiscard]] std::span<const Parameter> image() const noexcept { return host_parameters_; }

  /// Values and moments in host memory, brought up to date, after so many updates.
  void append_state(int64_t updates, std::vector<StateTensor>& tensors);
  void restore(const Checkpoint& checkpoint);
  /// Updates that a restored checkpoint has behind it.
  [[nodiscard]] int64_t restored_updates() const noexcept { return optimizer_.updates(); }

 private:
  void upload();

  bool separate_copies_;
  kernels::RowGradients<float> no_rows_;  // marks sparse parameters for the optimiser
  std::vector<std::vector<float>> host_values_;
  std::vector<Parameter> host_parameters_;
  Optimizer optimizer_;  // of the image
  std::vector<DeviceParameter> all_;
  at::Tensor gradients_;
};

}  // namespace hsm
