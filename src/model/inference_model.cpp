#include "model/inference_model.h"

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "kernels/gemm.h"
#include "kernels/vector_math.h"

namespace hsm {
namespace {

/// A recurrent layer with packed weights. The sum of both biases joins the input product; a GRU keeps the
/// recurrent one apart, for it is scaled by the reset gate.
struct Layer {
  Cell cell = Cell::lstm;
  int64_t input = 0;
  int64_t hidden = 0;
  int64_t gate_width = 0;    ///< gates · hidden
  int64_t state_offset = 0;  ///< of h in a stream's state; an LSTM's c follows it
  kernels::PackedMatrix<float> input_weights;
  kernels::PackedMatrix<float> recurrent_weights;
  std::vector<float> input_bias;
  std::vector<float> recurrent_bias;  ///< GRU only

  /// The weights [gates · hidden, input] and [gates · hidden, hidden] and both biases, as torch has them.
  Layer(Cell layer_cell, int64_t gates, int64_t input_size, int64_t hidden_size, const float* weight_ih,
        const float* weight_hh, const float* bias_ih, const float* bias_hh)
      : cell(layer_cell),
        input(input_size),
        hidden(hidden_size),
        gate_width(gates * hidden_size),
        input_weights(weight_ih, gate_width, input),
        recurrent_weights(weight_hh, gate_width, hidden),
        input_bias(bias_ih, bias_ih + gate_width) {
    if (cell == Cell::gru) {
      recurrent_bias.assign(bias_hh, bias_hh + gate_width);
    } else {
      for (float& bias : input_bias) bias += *bias_hh++;
    }
  }

  [[nodiscard]] uint64_t bytes() const {
    return input_weights.bytes() + recurrent_weights.bytes() +
           (input_bias.size() + recurrent_bias.size()) * sizeof(float);
  }

  /// One row's new state from its preactivations; `from_hidden` is a GRU's recurrent part.
  void update(float* gates, const float* from_hidden, float* h) const {
    switch (cell) {
      case Cell::lstm:
        kernels::lstm_pointwise(gates, hidden, h + hidden, h);
        return;
      case Cell::gru:
        kernels::gru_pointwise(gates, from_hidden, hidden, h);
        return;
      case Cell::rnn_tanh:
        kernels::tanh_inplace(gates, hidden);
        break;
      case Cell::rnn_relu:
        for (int64_t unit = 0; unit < hidden; ++unit) gates[unit] = gates[unit] < 0 ? 0 : gates[unit];
        break;
    }
    std::copy_n(gates, hidden, h);
  }
};

}  // namespace

struct InferenceModel::Packed {
  ModelShape shape;
  HeadLayout layout;
  std::vector<Layer> layers;
  kernels::PackedMatrix<float> projection;
  kernels::PackedMatrix<float> root;  ///< shortlist rows, then the clusters' own
  std::vector<float> root_bias;
  const float* embedding = nullptr;
  const float* word = nullptr;
  const float* word_bias = nullptr;
  int64_t activation_width = 0;  ///< of the widest input of a layer or of the projection
  int64_t gate_width = 0;        ///< of the widest layer

  /// Input products [rows, layer.gate_width] of `input` [rows, layer.input].
  static void multiply_input(const Layer& layer, int64_t rows, const float* input, float* products);
  /// The steps of a layer from its input products, which are used up, to `output` [steps · streams,
  /// layer.hidden].
  void run_steps(const Layer& layer, int64_t steps, int64_t streams, float* state, float* products,
                 float* output, float* from_hidden) const;
  void gather_embeddings(std::span<const int32_t> tokens, float* rows) const;
  void pack(const WeightView& weights);
  void pack_root(const float* cluster, const float* cluster_bias);
};

void InferenceModel::Packed::pack(const WeightView& weights) {
  // In the order of parameter_specs().
  auto next = [tensor = weights.tensors.begin()]() mutable { return *tensor++; };
  if (!shape.tied) embedding = next();

  activation_width = shape.has_projection() ? shape.hidden.back() : 0;
  int64_t state_offset = 0;
  for (size_t index = 0; index < shape.hidden.size(); ++index) {
    const float* weight_ih = next();
    const float* weight_hh = next();
    const float* bias_ih = next();
    const float* bias_hh = next();
    Layer& layer = layers.emplace_back(shape.cell, shape.gates(), shape.layer_input(index),
                                       shape.hidden[index], weight_ih, weight_hh, bias_ih, bias_hh);
    layer.state_offset = state_offset;
    state_offset += shape.layer_state(layer.hidden);
    activation_width = std::max(activation_width, layer.input);
    gate_width = std::max(gate_width, layer.gate_width);
  }

  if (shape.has_projection()) {
    projection = kernels::PackedMatrix<float>(next(), shape.head_dim(), shape.hidden.back());
  }
  word = next();
  word_bias = next();
  if (shape.tied) embedding = word;
  const float* cluster = next();
  pack_root(cluster, next());
}

void InferenceModel::Packed::pack_root(const float* cluster, const float* cluster_bias) {
  const int64_t dim = shape.head_dim();
  const int64_t shortlist = layout.shortlist();
  const int64_t clusters = layout.clusters();
  std::vector<float> rows(word, word + shortlist * dim);
  rows.insert(rows.end(), cluster, cluster + clusters * dim);
  root = kernels::PackedMatrix<float>(rows.data(), shortlist + clusters, dim);
  root_bias.assign(word_bias, word_bias + shortlist);
  root_bias.insert(root_bias.end(), cluster_bias, cluster_bias + clusters);
}

void InferenceModel::Packed::gather_embeddings(std::span<const int32_t> tokens, float* rows) const {
  for (const int32_t token : tokens) {
    if (token < 0 || token >= shape.words) {
      throw DataError("word id " + std::to_string(token) + ", but the model has " +
                      std::to_string(shape.words) + " words");
    }
    const int64_t row = layout.row_of_word[static_cast<size_t>(token)];
    rows = std::copy_n(embedding + row * shape.embedding, shape.embedding, rows);
  }
}

void InferenceModel::Packed::multiply_input(const Layer& layer, int64_t rows, const float* input,
                                            float* products) {
  kernels::gemm_packed(rows, input, layer.input, layer.input_weights, layer.input_bias.data(), false,
                       products, layer.gate_width);
}

void InferenceModel::Packed::run_steps(const Layer& layer, int64_t steps, int64_t streams, float* state,
                                       float* gates, float* output, float* from_hidden) const {
  const int64_t width = layer.gate_width;
  const int64_t state_size = shape.state_size();
  float* hidden_state = state + layer.state_offset;
  for (int64_t step = 0; step < steps; ++step) {
    if (layer.cell == Cell::gru) {
      kernels::gemm_packed(streams, hidden_state, state_size, layer.recurrent_weights,
                           layer.recurrent_bias.data(), false, from_hidden, width);
    } else {
      kernels::gemm_packed<float>(streams, hidden_state, state_size, layer.recurrent_weights, nullptr, true,
                                  gates, width);
    }
    for (int64_t stream = 0; stream < streams; ++stream) {
      float* h = hidden_state + stream * state_size;
      layer.update(gates + stream * width, from_hidden + stream * width, h);
      output = std::copy_n(h, layer.hidden, output);
    }
    gates += streams * width;
  }
}

InferenceModel::InferenceModel(ModelShape shape, HeadLayout layout, const WeightView& weights)
    : packed_(std::make_unique<Packed>()) {
  const std::vector<TensorSpec> specs = parameter_specs(shape);
  if (weights.tensors.size() != specs.size() || layout.words() != shape.words ||
      layout.clusters() != shape.clusters) {
    throw std::invalid_argument("InferenceModel: shape, layout and weights don't belong together");
  }
  packed_->shape = std::move(shape);
  packed_->layout = std::move(layout);
  packed_->pack(weights);
}

InferenceModel::~InferenceModel() = default;
InferenceModel::InferenceModel(InferenceModel&&) noexcept = default;
InferenceModel& InferenceModel::operator=(InferenceModel&&) noexcept = default;

const ModelShape& InferenceModel::shape() const noexcept {
  return packed_->shape;
}
const HeadLayout& InferenceModel::layout() const noexcept {
  return packed_->layout;
}

uint64_t InferenceModel::owned_bytes() const noexcept {
  uint64_t bytes =
      packed_->projection.bytes() + packed_->root.bytes() + packed_->root_bias.size() * sizeof(float);
  for (const Layer& layer : packed_->layers) bytes += layer.bytes();
  return bytes;
}

int64_t InferenceModel::run_scratch(int64_t steps, int64_t streams) const noexcept {
  const int64_t rows = steps * streams;
  const int64_t from_hidden = packed_->shape.cell == Cell::gru ? streams * packed_->gate_width : 0;
  return rows * (packed_->activation_width + packed_->gate_width) + from_hidden;
}

void InferenceModel::run(std::span<const int32_t> tokens, int64_t steps, int64_t streams, float* state,
                         float* output, float* scratch) const {
  const int64_t rows = steps * streams;
  if (std::cmp_not_equal(tokens.size(), rows)) {
    throw std::invalid_argument("InferenceModel::run: expected steps · streams tokens");
  }
  if (rows == 0) return;
  float* products = scratch + rows * packed_->activation_width;
  embed(tokens, scratch);
  Packed::multiply_input(packed_->layers.front(), rows, scratch, products);
  run_products(products, steps, streams, state, output, scratch);
}

int64_t InferenceModel::product_width() const noexcept {
  return packed_->layers.front().gate_width;
}

void InferenceModel::input_products(std::span<const int32_t> tokens, float* products, float* scratch) const {
  embed(tokens, scratch);
  Packed::multiply_input(packed_->layers.front(), static_cast<int64_t>(tokens.size()), scratch, products);
}

void InferenceModel::run_first_layer(float* products, int64_t steps, int64_t streams, float* state,
                                     float* output, float* scratch) const {
  packed_->run_steps(packed_->layers.front(), steps, streams, state, products, output, scratch);
}

void InferenceModel::run_products(float* products, int64_t steps, int64_t streams, float* state,
                                  float* output, float* scratch) const {
  const int64_t rows = steps * streams;
  float* activations = scratch;
  float* layer_scratch = activations + rows * packed_->activation_width;
  for (size_t layer = 0; layer < packed_->layers.size(); ++layer) {
    // A layer's input is used up by its input product, so its output takes that place.
    const bool to_head = layer + 1 == packed_->layers.size() && !packed_->shape.has_projection();
    float* layer_output = to_head ? output : activations;
    if (layer == 0) {
      run_first_layer(products, steps, streams, state, layer_output,
                      layer_scratch + rows * packed_->gate_width);
    } else {
      run_layer(layer, activations, steps, streams, state, layer_output, layer_scratch);
    }
  }
  if (packed_->shape.has_projection()) project(activations, rows, output);
}

void InferenceModel::embed(std::span<const int32_t> tokens, float* output) const {
  packed_->gather_embeddings(tokens, output);
}

void InferenceModel::run_layer(size_t layer, const float* input, int64_t steps, int64_t streams, float* state,
                               float* output, float* scratch) const {
  const Layer& own = packed_->layers[layer];
  Packed::multiply_input(own, steps * streams, input, scratch);
  packed_->run_steps(own, steps, streams, state, scratch, output,
                     scratch + steps * streams * packed_->gate_width);
}

void InferenceModel::project(const float* input, int64_t rows, float* output) const {
  kernels::gemm_packed<float>(rows, input, packed_->shape.hidden.back(), packed_->projection, nullptr, false,
                              output, packed_->shape.head_dim());
}

void InferenceModel::root_log_probs(const float* head_input, int64_t rows, float* log_probs) const {
  const int64_t width = packed_->root.n();
  kernels::gemm_packed(rows, head_input, packed_->shape.head_dim(), packed_->root, packed_->root_bias.data(),
                       false, log_probs, width);
  for (int64_t row = 0; row < rows; ++row) kernels::log_softmax(log_probs + row * width, width);
}

void InferenceModel::leaf_log_probs(int64_t cluster, std::span<const float* const> head_inputs,
                                    float* log_probs) const {
  const std::vector<int64_t>& offsets = packed_->layout.cluster_offsets;
  const int64_t first = offsets[static_cast<size_t>(cluster)];
  const int64_t width = offsets[static_cast<size_t>(cluster) + 1] - first;
  const int64_t dim = packed_->shape.head_dim();
  const auto rows = static_cast<int64_t>(head_inputs.size());
  if (width == 1) {  // nothing to choose: certain
    std::fill_n(log_probs, rows, 0.0F);
    return;
  }
  kernels::gemm_nt_rows(rows, width, dim, head_inputs.data(), packed_->word + first * dim, dim,
                        packed_->word_bias + first, log_probs, width);
  for (int64_t row = 0; row < rows; ++row) kernels::log_softmax(log_probs + row * width, width);
}

}  // namespace hsm
