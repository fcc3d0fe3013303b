#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <vector>

#include "base/random.h"
#include "config/config.h"
#include "gpu/engine/device_numbers.h"
#include "gpu/engine/device_optimizer.h"
#include "gpu/engine/device_parameters.h"
#include "gpu/engine/recurrent_layers.h"
#include "gpu/engine/window_rows.h"
#include "kernels/device/device_kernels.h"
#include "model/activation_penalty.h"
#include "model/training_model.h"
#include "text/batches.h"

namespace hsm {

/// Kernels on one stream of the device.
struct EngineKernels {
  kernels::device::DeviceKernels& elements;  ///< of activations
  kernels::device::DeviceKernels& floats;    ///< of gradients of parameters
};

/// Forward and backward pass of windows on the device, with the masks and penalties of TrainingModel. It only
/// launches; carried states stay on the device.
class DeviceModel {
 public:
  /// All of it but `config` and `shape` outlives the object. `elements`: device and type of activations.
  DeviceModel(const Config& config, const ModelShape& shape, const HeadLayout& layout,
              DeviceParameters& parameters, const EngineKernels& kernels, const at::TensorOptions& elements);

  /// One window: dense gradients go to `parameters`, the others are returned, of `scale` times the loss.
  /// `rows` has its factors, the same scale among them; `numbers` are its numbers on the device.
  WindowGradients step(const Batch& batch, const WindowRows& rows, const DeviceNumbers& numbers, int64_t step,
                       float scale);

  /// Carried states; see RecurrentLayers.
  [[nodiscard]] at::Tensor states() const { return layers_.states(); }
  void set_states(const at::Tensor& states) { layers_.set_states(states); }

 private:
  /// A window at hand.
  struct Window {
    const WindowRows& rows;
    const DeviceNumbers& numbers;
    int64_t steps = 0;
    int64_t step = 0;
    WindowGradients gradients;
    int64_t passes = 0;       // of the head, made so far
    bool first_piece = true;  // dense gradients are overwritten, else added to
  };
  /// A recurrent weight with single values dropped.
  struct ThinnedWeight {
    size_t parameter = 0;
    at::Tensor values;
  };

  [[nodiscard]] std::vector<at::Tensor> recurrent_weights();
  [[nodiscard]] at::TensorOptions of(at::ScalarType type) const { return elements_.dtype(type); }
  [[nodiscard]] DeviceParameter& parameter(size_t index) { return parameters_.all()[index]; }

  void thin(const ThinnedWeight& weight, kernels::device::DeviceKernels& kernels, int64_t step,
            at::Tensor& values);
  void drop(Purpose purpose, double probability, int64_t layer, const Window& window,
            const WindowPiece& piece, int64_t units, at::Tensor& values);
  void penalize(const Window& window, const WindowPiece& piece, bool temporal, const at::Tensor& output,
                at::Tensor& gradient);
  void make_gradients(Window& window);
  void run_piece(Window& window, const WindowPiece& piece);
  at::Tensor look_up(const Window& window, const WindowPiece& piece);
  at::Tensor project_and_score(Window& window, const WindowPiece& piece, const at::Tensor& outputs);
  at::Tensor head(Window& window, const WindowPiece& piece, const at::Tensor& hidden);
  void head_chunk(Window& window, const HeadChunk& chunk, const WindowPiece& piece, const at::Tensor& hidden,
                  at::Tensor& hidden_gradient);
  void embedding_gradient(Window& window, const WindowPiece& piece, const at::Tensor& gradient);
  void take_dense(const Window& window, size_t index, const at::Tensor& gradient);

  DropoutConfig dropout_;
  uint64_t seed_;
  ModelShape shape_;
  const HeadLayout& layout_;
  DeviceParameters& parameters_;
  EngineKernels kernels_;
  at::TensorOptions elements_;
  ActivationPenalty penalty_;
  int64_t largest_cluster_;
  size_t first_recurrent_;
  size_t head_word_;  // then its bias, head.cluster.weight and its bias; the projection stands before it
  std::vector<ThinnedWeight> thinned_;
  RecurrentLayers layers_;
  at::Tensor cluster_offsets_, cluster_of_row_;
};

}  // namespace hsm
