#include "model/recurrent_stack.h"

#include <vector>

#include "kernels/dropout.h"
#include "kernels/recurrent.h"

namespace hsm {
namespace {

constexpr size_t kWeightsPerLayer = 4;  // weight_ih, weight_hh, bias_ih, bias_hh

template <class Pointer>
auto layer_weights(std::span<Pointer const> pointers, size_t layer) {
  const auto four = pointers.subspan(layer * kWeightsPerLayer, kWeightsPerLayer);
  return kernels::LayerWeights<std::remove_pointer_t<Pointer>>{four[0], four[1], four[2], four[3]};
}

class KernelRecurrentStack final : public RecurrentStack {
 public:
  KernelRecurrentStack(const ModelShape& shape, std::span<float* const> weights, ThreadPool& pool)
      : shape_(shape), weights_(weights.begin(), weights.end()), pool_(pool) {
    for (size_t layer = 0; layer < shape.hidden.size(); ++layer) {
      layers_.emplace_back(shape.cell, shape.layer_input(layer), shape.hidden[layer]);
    }
    between_.resize(layers_.size());
  }

  void forward(const RecurrentPass& pass) override {
    pass_ = pass;
    float* state = pass.state;
    for (size_t layer = 0; layer < layers_.size(); ++layer) {
      const bool last = layer + 1 == layers_.size();
      auto& output = between_[layer];
      if (!last) output.resize(static_cast<size_t>(pass.steps * pass.streams * layers_[layer].hidden()));
      const kernels::LayerInput<float> input = layer == 0
                                                   ? kernels::LayerInput<float>{pass.input, pass.groups}
                                                   : kernels::LayerInput<float>{between_[layer - 1].data()};
      layers_[layer].forward(layer_weights(std::span<const float* const>(weights_), layer), pass.steps,
                             pass.streams, input, state, shape_.state_size(),
                             last ? pass.output : output.data(), pool_);
      if (!last) drop(layer + 1, output.data());
      state += kernels::state_width(shape_.cell, layers_[layer].hidden());
    }
  }

  void backward(const float* output_gradient, float* input_gradient,
                std::span<float* const> weight_gradients) override {
    const float* upstream = output_gradient;
    for (size_t layer = layers_.size(); layer-- > 0;) {
      float* down = input_gradient;
      if (layer > 0) {
        auto& buffer = layer % 2 == 0 ? even_gradient_ : odd_gradient_;
        buffer.resize(between_[layer - 1].size());
        down = buffer.data();
      }
      layers_[layer].backward(layer_weights(std::span<const float* const>(weights_), layer), upstream, down,
                              layer_weights(weight_gradients, layer), pool_);
      if (layer > 0) drop(layer, down);
      upstream = down;
    }
  }

 private:
  // Drops units of the input of `layer`, or of its gradient, by this window's mask.
  void drop(size_t layer, float* values) {
    const kernels::DropoutKey key{pass_.dropout.seed, Purpose::dropout_hidden, pass_.dropout.step,
                                  static_cast<int64_t>(layer)};
    kernels::apply_dropout(
        {pass_.steps, pass_.streams, shape_.layer_input(layer), pass_.dropout.first_stream},
        pass_.dropout.probability, pass_.dropout.locked, key, values, pool_);
  }

  ModelShape shape_;
  std::vector<const float*> weights_;
  ThreadPool& pool_;
  RecurrentPass pass_;
  std::vector<kernels::RecurrentLayer<float>> layers_;
  std::vector<std::vector<float>> between_;  // outputs of each layer but the last, after dropout
  std::vector<float> even_gradient_;         // of the input of an even or odd layer
  std::vector<float> odd_gradient_;
};

}  // namespace

std::unique_ptr<RecurrentStack> make_recurrent_stack(const ModelShape& shape, std::span<float* const> weights,
                                                     ThreadPool& pool) {
  return std::make_unique<KernelRecurrentStack>(shape, weights, pool);
}

}  // namespace hsm
