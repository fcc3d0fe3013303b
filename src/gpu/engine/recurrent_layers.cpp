#include "gpu/engine/recurrent_layers.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <utility>

namespace hsm {
namespace {

constexpr size_t kWeightsPerLayer = 4;

// cudnnRNNMode_t
int64_t cudnn_mode(Cell cell) {
  switch (cell) {
    case Cell::rnn_relu:
      return 0;
    case Cell::rnn_tanh:
      return 1;
    case Cell::lstm:
      return 2;
    default:
      return 3;
  }
}

}  // namespace

RecurrentLayers::RecurrentLayers(const ModelShape& shape, std::vector<at::Tensor> weights, bool learns)
    : shape_(shape), weights_(std::move(weights)), learns_(learns), layers_(shape.hidden.size()) {
  if (weights_.front().is_cuda()) flatten();
  for (at::Tensor& weight : weights_) weight = weight.detach().set_requires_grad(learns);
}

// cuDNN reads a layer's weights from one piece of memory. Without this, each call would first copy them
// there.
void RecurrentLayers::flatten() {
  const c10::AutoGradMode no_gradients(false);
  for (size_t layer = 0; layer < layers_.size(); ++layer) {
    at::_cudnn_rnn_flatten_weight(weights_of(layer), static_cast<int64_t>(kWeightsPerLayer),
                                  shape_.layer_input(layer), cudnn_mode(shape_.cell), shape_.hidden[layer], 0,
                                  1, false, false);
  }
}

std::vector<at::Tensor> RecurrentLayers::weights_of(size_t layer) const {
  const auto first = weights_.begin() + static_cast<int64_t>(layer * kWeightsPerLayer);
  return {first, first + kWeightsPerLayer};
}

void RecurrentLayers::begin_window(int64_t streams, bool starts) {
  if (!starts && streams == streams_) return;
  streams_ = streams;
  for (size_t i = 0; i < layers_.size(); ++i) {
    const std::vector<int64_t> size{1, streams, shape_.hidden[i]};
    layers_[i].h = at::zeros(size, weights_.front().options());
    if (shape_.cell == Cell::lstm) layers_[i].c = at::zeros(size, weights_.front().options());
  }
}

at::Tensor RecurrentLayers::forward(const at::Tensor& x, StreamGroup group, const Drop* drop) {
  at::Tensor values = x;
  for (size_t i = 0; i < layers_.size(); ++i) {
    if (i > 0 && drop != nullptr) {
      values = values.clone();  // cuDNN's backward pass reads the layer's own output
      (*drop)(i, values);
    }
    values = run(i, values, group);
  }
  return values;
}

at::Tensor RecurrentLayers::run(size_t index, const at::Tensor& x, StreamGroup group) {
  Layer& layer = layers_[index];
  layer.x = x.detach().set_requires_grad(learns_);
  at::Tensor h = layer.h.narrow(1, group.first, group.count);
  at::Tensor next_h;
  {
    const c10::AutoGradMode with_gradients(learns_);
    const std::vector<at::Tensor> weights = weights_of(index);
    const at::Tensor h0 = h.clone(at::MemoryFormat::Contiguous);  // read again by the backward pass
    if (shape_.cell == Cell::lstm) {
      at::Tensor c = layer.c.narrow(1, group.first, group.count);
      const std::vector<at::Tensor> start{h0, c.clone(at::MemoryFormat::Contiguous)};
      at::Tensor next_c;
      std::tie(layer.y, next_h, next_c) =
          at::lstm(layer.x, start, weights, true, 1, 0.0, learns_, false, false);
      c.copy_(next_c.detach());
    } else if (shape_.cell == Cell::gru) {
      std::tie(layer.y, next_h) = at::gru(layer.x, h0, weights, true, 1, 0.0, learns_, false, false);
    } else if (shape_.cell == Cell::rnn_tanh) {
      std::tie(layer.y, next_h) = at::rnn_tanh(layer.x, h0, weights, true, 1, 0.0, learns_, false, false);
    } else {
      std::tie(layer.y, next_h) = at::rnn_relu(layer.x, h0, weights, true, 1, 0.0, learns_, false, false);
    }
  }
  h.copy_(next_h.detach());
  const at::Tensor y = layer.y.detach();
  if (!learns_) layer.x = layer.y = at::Tensor();
  return y;
}

at::Tensor RecurrentLayers::backward(at::Tensor gradient, const Drop* drop,
                                     const std::function<void(size_t, const at::Tensor&)>& take) {
  for (size_t i = layers_.size(); i-- > 0;) {
    Layer& layer = layers_[i];
    std::vector<at::Tensor> inputs = weights_of(i);
    inputs.push_back(layer.x);
    const auto gradients = torch::autograd::grad({layer.y}, inputs, {gradient});
    for (size_t w = 0; w < kWeightsPerLayer; ++w) take(i * kWeightsPerLayer + w, gradients[w]);
    gradient = gradients.back().contiguous();
    if (i > 0 && drop != nullptr) (*drop)(i, gradient);
    layer.x.reset();  // frees what the layer kept
    layer.y.reset();
  }
  return gradient;
}

at::Tensor RecurrentLayers::states() const {
  at::Tensor states = at::empty({streams_, shape_.state_size()}, at::kFloat);
  int64_t at_unit = 0;
  const auto put = [&](const at::Tensor& part) {
    states.narrow(1, at_unit, part.size(2)).copy_(part[0]);
    at_unit += part.size(2);
  };
  for (const Layer& layer : layers_) {
    if (streams_ == 0) break;
    put(layer.h);
    if (layer.c.defined()) put(layer.c);
  }
  return states;
}

void RecurrentLayers::set_states(const at::Tensor& states) {
  begin_window(states.size(0), true);
  int64_t at_unit = 0;
  const auto take = [&](at::Tensor& part) {
    part[0].copy_(states.narrow(1, at_unit, part.size(2)));
    at_unit += part.size(2);
  };
  for (Layer& layer : layers_) {
    take(layer.h);
    if (layer.c.defined()) take(layer.c);
  }
}

}  // namespace hsm
