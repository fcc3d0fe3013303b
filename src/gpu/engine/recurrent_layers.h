#pragma once
#include <ATen/core/Tensor.h>

#include <functional>
#include <vector>

#include "model/micro_batch.h"
#include "model/model_shape.h"

namespace hsm {

/// The recurrent layers on a device, by LibTorch: on a GPU one cuDNN call a layer and direction. States stay
/// there between windows.
class RecurrentLayers {
 public:
  /// Drops units of what layer `layer` reads, or of its gradient, in place.
  using Drop = std::function<void(size_t layer, at::Tensor& values)>;

  /// `weights`: weight_ih, weight_hh, bias_ih and bias_hh of each layer, all of one type on one device. On a
  /// GPU these tensors get other memory, together as cuDNN wants it. They are read where they lie, so an
  /// update may change them between passes. Without `learns`, nothing is kept for backward().
  RecurrentLayers(const ModelShape& shape, std::vector<at::Tensor> weights, bool learns = true);

  /// States of this many streams: zero, when `starts` or when there were others before.
  void begin_window(int64_t streams, bool starts);
  /// x [steps, group's streams, embedding] → [steps, streams, hidden of the last layer], which must not be
  /// changed. With `drop`, units are dropped between layers.
  at::Tensor forward(const at::Tensor& x, StreamGroup group, const Drop* drop);
  /// After forward(): from the gradient by the output that by x. take(i, g) gets the gradient of weight i.
  at::Tensor backward(at::Tensor gradient, const Drop* drop,
                      const std::function<void(size_t, const at::Tensor&)>& take);

  /// States as ModelShape has them, float32 [streams, state_size] in host memory; streams 0: none yet.
  [[nodiscard]] at::Tensor states() const;
  void set_states(const at::Tensor& states);

 private:
  struct Layer {
    at::Tensor h;  ///< [1, streams, hidden]
    at::Tensor c;  ///< the LSTM's
    at::Tensor x;  ///< of the last forward()
    at::Tensor y;
  };
  void flatten();
  at::Tensor run(size_t index, const at::Tensor& x, StreamGroup group);
  [[nodiscard]] std::vector<at::Tensor> weights_of(size_t layer) const;

  ModelShape shape_;
  std::vector<at::Tensor> weights_;
  bool learns_;
  std::vector<Layer> layers_;
  int64_t streams_ = 0;
};

}  // namespace hsm
