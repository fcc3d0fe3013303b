#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/GradMode.h>
#include <torch/csrc/autograd/autograd.h>

#include <cstring>
#include <vector>

#include "kernels/dropout.h"
#include "model/recurrent_stack.h"

namespace hsm {
namespace {

constexpr size_t kWeightsPerLayer = 4;  // weight_ih, weight_hh, bias_ih, bias_hh

class TorchRecurrentStack final : public RecurrentStack {
 public:
  TorchRecurrentStack(const ModelShape& shape, std::span<float* const> weights, ThreadPool& pool)
      : shape_(shape), pool_(pool) {
    at::set_num_threads(pool.threads());
    size_t next = 0;
    for (size_t layer = 0; layer < shape.hidden.size(); ++layer) {
      const int64_t rows = shape.gates() * shape.hidden[layer];
      using Size = std::vector<int64_t>;
      for (const Size& size :
           {Size{rows, shape.layer_input(layer)}, Size{rows, shape.hidden[layer]}, Size{rows}, Size{rows}}) {
        weights_.push_back(at::from_blob(weights[next++], size).set_requires_grad(true));
      }
    }
  }

  void forward(const RecurrentPass& pass) override {
    const c10::AutoGradMode with_gradients(true);
    const int64_t rows = pass.groups == nullptr ? pass.steps * pass.streams : pass.groups->size();
    input_ = at::from_blob(const_cast<float*>(pass.input), {rows, shape_.embedding}).set_requires_grad(true);
    at::Tensor state = at::from_blob(pass.state, {pass.streams, shape_.state_size()});
    at::Tensor x = input_;
    if (pass.groups != nullptr) {
      const std::vector<int64_t>& place = pass.groups->place;
      x = x.index_select(0, at::tensor(at::ArrayRef<int64_t>(place)));
    }
    x = x.view({pass.steps, pass.streams, shape_.embedding});
    int64_t at_state = 0;
    for (size_t layer = 0; layer < shape_.hidden.size(); ++layer) {
      if (layer > 0) x = drop(x, layer, pass);
      x = run_layer(layer, x, state, at_state);
    }
    output_ = x;
    std::memcpy(pass.output, output_.contiguous().const_data_ptr<float>(), output_.nbytes());
  }

  void backward(const float* output_gradient, float* input_gradient,
                std::span<float* const> weight_gradients) override {
    torch::autograd::variable_list inputs{input_};
    inputs.insert(inputs.end(), weights_.begin(), weights_.end());
    const at::Tensor upstream = at::from_blob(const_cast<float*>(output_gradient), output_.sizes());
    const auto gradients = torch::autograd::grad({output_}, inputs, {upstream});
    copy_out(gradients[0], input_gradient);
    for (size_t i = 0; i < weights_.size(); ++i) copy_out(gradients[i + 1], weight_gradients[i]);
    output_.reset();  // frees the graph with every step's activations
    input_.reset();
  }

 private:
  static void copy_out(const at::Tensor& from, float* to) {
    std::memcpy(to, from.contiguous().const_data_ptr<float>(), from.nbytes());
  }

  // A copy of x with units dropped; autograd sees a product with a constant mask.
  at::Tensor drop(const at::Tensor& x, size_t layer, const RecurrentPass& pass) {
    if (pass.dropout.probability == 0) return x;
    at::Tensor mask = at::ones(x.sizes());
    kernels::DropoutKey key;
    key.seed = pass.dropout.seed;
    key.purpose = Purpose::dropout_hidden;
    key.step = pass.dropout.step;
    key.layer = static_cast<int64_t>(layer);
    kernels::apply_dropout({pass.steps, pass.streams, shape_.layer_input(layer), pass.dropout.first_stream},
                           pass.dropout.probability, pass.dropout.locked, key, mask.mutable_data_ptr<float>(),
                           pool_);
    return x * mask;
  }

  // State columns of the layer are read and replaced; `at_state` moves behind them.
  at::Tensor run_layer(size_t layer, const at::Tensor& x, at::Tensor& state, int64_t& at_state) {
    const int64_t hidden = shape_.hidden[layer];
    const auto part = [&] { return state.narrow(1, std::exchange(at_state, at_state + hidden), hidden); };
    const std::vector<at::Tensor> parameters(
        weights_.begin() + static_cast<int64_t>(layer * kWeightsPerLayer),
        weights_.begin() + static_cast<int64_t>((layer + 1) * kWeightsPerLayer));
    at::Tensor h_state = part();
    const at::Tensor h0 = h_state.clone().unsqueeze(0);
    at::Tensor y;
    at::Tensor h;
    if (shape_.cell == Cell::lstm) {
      at::Tensor c_state = part();
      at::Tensor c;
      const std::vector<at::Tensor> start{h0, c_state.clone().unsqueeze(0)};
      std::tie(y, h, c) = at::lstm(x, start, parameters, true, 1, 0.0, true, false, false);
      c_state.copy_(c.detach().squeeze(0));
    } else if (shape_.cell == Cell::gru) {
      std::tie(y, h) = at::gru(x, h0, parameters, true, 1, 0.0, true, false, false);
    } else if (shape_.cell == Cell::rnn_tanh) {
      std::tie(y, h) = at::rnn_tanh(x, h0, parameters, true, 1, 0.0, true, false, false);
    } else {
      std::tie(y, h) = at::rnn_relu(x, h0, parameters, true, 1, 0.0, true, false, false);
    }
    h_state.copy_(h.detach().squeeze(0));
    return y;
  }

  ModelShape shape_;
  ThreadPool& pool_;
  std::vector<at::Tensor> weights_;
  at::Tensor input_;
  at::Tensor output_;
};

}  // namespace

std::unique_ptr<RecurrentStack> make_torch_recurrent_stack(const ModelShape& shape,
                                                           std::span<float* const> weights,
                                                           ThreadPool& pool) {
  return std::make_unique<TorchRecurrentStack>(shape, weights, pool);
}

}  // namespace hsm
