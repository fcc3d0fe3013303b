#include "gpu/engine/device_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <string>
#include <string_view>

namespace hsm {
namespace {

namespace dev = kernels::device;

size_t first_named(std::vector<DeviceParameter>& all, std::string_view beginning) {
  const auto found = std::find_if(all.begin(), all.end(), [&](const DeviceParameter& each) {
    return std::string_view(each.name).starts_with(beginning);
  });
  return static_cast<size_t>(found - all.begin());
}

template <class T>
at::Tensor to_device(const std::vector<T>& values, const at::TensorOptions& options) {
  const at::Tensor host = at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())},
                                        options.device(at::kCPU));
  return at::empty(host.sizes(), options).copy_(host);
}

}  // namespace

DeviceModel::DeviceModel(const Config& config, const ModelShape& shape, const HeadLayout& layout,
                         DeviceParameters& parameters, const EngineKernels& kernels,
                         const at::TensorOptions& elements)
    : dropout_(config.model.dropout),
      seed_(config.train.seed),
      shape_(shape),
      layout_(layout),
      parameters_(parameters),
      kernels_(kernels),
      elements_(elements),
      penalty_(config.model.regularization.activation, config.model.regularization.temporal),
      largest_cluster_(largest_cluster(layout)),
      first_recurrent_(first_named(parameters.all(), "rnn.")),
      head_word_(first_named(parameters.all(), "head.word.")),
      layers_(shape_, recurrent_weights()),
      cluster_offsets_(to_device(layout.cluster_offsets, of(at::kLong))),
      cluster_of_row_(to_device(layout.cluster_of_row, of(at::kInt))) {}

// What the layers read; with weight drop, thinned copies among them.
std::vector<at::Tensor> DeviceModel::recurrent_weights() {
  std::vector<at::Tensor> weights;
  for (size_t i = first_recurrent_; parameter(i).name.starts_with("rnn."); ++i) {
    at::Tensor values = parameter(i).compute;
    if (dropout_.weight > 0 && parameter(i).name.starts_with("rnn.weight_hh")) {
      values = at::empty_like(values);
      thinned_.push_back({i, values});
    }
    weights.push_back(values);
  }
  return weights;
}

WindowGradients DeviceModel::step(const Batch& batch, const WindowRows& rows, const DeviceNumbers& numbers,
                                  int64_t step, float scale) {
  Window window{rows, numbers, batch.steps, step, {}};
  make_gradients(window);
  layers_.begin_window(batch.streams, batch.starts);
  penalty_.begin_window(batch, scale);
  for (ThinnedWeight& weight : thinned_) {
    weight.values.copy_(parameter(weight.parameter).compute);
    thin(weight, kernels_.elements, step, weight.values);
  }
  for (const WindowPiece& piece : rows.pieces) {
    run_piece(window, piece);
    window.first_piece = false;
  }
  for (const ThinnedWeight& weight : thinned_) {
    thin(weight, kernels_.floats, step, parameter(weight.parameter).gradient);
  }
  return window.gradients;
}

// Gradients of rows. What comes in several pieces is added up from zero; one pass fills them.
void DeviceModel::make_gradients(Window& window) {
  const WindowRows& rows = window.rows;
  WindowGradients& gradients = window.gradients;
  const int64_t dim = shape_.head_dim();
  if (rows.one_pass() && !shape_.tied) {
    const int64_t head_rows = layout_.shortlist() + rows.pieces.front().chunks.front().most_hit_rows;
    gradients.word = at::empty({head_rows, dim}, of(at::kFloat));
    gradients.word_bias = at::empty({head_rows}, of(at::kFloat));
  } else {
    gradients.word = at::zeros({rows.head.count, dim}, of(at::kFloat));
    gradients.word_bias = at::zeros({rows.head.count}, of(at::kFloat));
  }
  if (!shape_.tied) gradients.embedding = at::zeros({rows.embedding.count, shape_.embedding}, of(at::kFloat));
  int64_t passes = 0;
  for (const WindowPiece& piece : rows.pieces) passes += static_cast<int64_t>(piece.chunks.size());
  gradients.losses = at::empty({passes}, of(at::kFloat));
}

void DeviceModel::run_piece(Window& window, const WindowPiece& piece) {
  const RecurrentLayers::Drop between = [&](size_t layer, at::Tensor& values) {
    drop(Purpose::dropout_hidden, dropout_.hidden, static_cast<int64_t>(layer), window, piece,
         shape_.layer_input(layer), values);
  };
  const RecurrentLayers::Drop* hidden = dropout_.hidden > 0 ? &between : nullptr;
  const int64_t width = shape_.hidden.back();

  at::Tensor x = look_up(window, piece);
  drop(Purpose::dropout_input, dropout_.input, 0, window, piece, shape_.embedding, x);
  const at::Tensor y = layers_.forward(x, piece.group, hidden).contiguous();
  at::Tensor outputs = dropout_.output > 0 ? y.clone() : y;  // the layer's own output is read again
  drop(Purpose::dropout_output, dropout_.output, 0, window, piece, width, outputs);

  at::Tensor gradient = project_and_score(window, piece, outputs.view({piece.tokens, width}));
  if (penalty_.activation()) penalize(window, piece, false, outputs, gradient);
  drop(Purpose::dropout_output, dropout_.output, 0, window, piece, width, gradient);
  if (penalty_.temporal()) penalize(window, piece, true, y, gradient);

  gradient = layers_.backward(gradient.view(y.sizes()), hidden, [&](size_t weight, const at::Tensor& g) {
    take_dense(window, first_recurrent_ + weight, g);
  });
  drop(Purpose::dropout_input, dropout_.input, 0, window, piece, shape_.embedding, gradient);
  embedding_gradient(window, piece, gradient);
}

at::Tensor DeviceModel::look_up(const Window& window, const WindowPiece& piece) {
  at::Tensor x = at::empty({window.steps, piece.group.count, shape_.embedding}, elements_);
  const at::Tensor& table = parameter(shape_.tied ? head_word_ : 0).compute;
  kernels_.elements.gather_rows(
      table.const_data_ptr(), shape_.embedding, window.numbers.pointer<int32_t>(piece.inputs),
      piece.scales.count > 0 ? window.numbers.pointer<float>(piece.scales) : nullptr, piece.tokens,
      x.mutable_data_ptr());
  return x;
}

void DeviceModel::drop(Purpose purpose, double probability, int64_t layer, const Window& window,
                       const WindowPiece& piece, int64_t units, at::Tensor& values) {
  kernels_.elements.dropout({seed_, static_cast<uint32_t>(purpose), window.step, layer, window.steps,
                             piece.group.count, piece.group.first, units, probability, dropout_.locked},
                            values.mutable_data_ptr());
}

// Weight drop: one mask for a window, for the weights and for their gradient.
void DeviceModel::thin(const ThinnedWeight& weight, dev::DeviceKernels& kernels, int64_t step,
                       at::Tensor& values) {
  kernels.dropout({seed_, static_cast<uint32_t>(Purpose::dropout_weight), step,
                   static_cast<int64_t>(weight.parameter - first_recurrent_), values.size(0), 1, 0,
                   values.size(1), dropout_.weight, false},
                  values.mutable_data_ptr());
}

void DeviceModel::penalize(const Window& window, const WindowPiece& piece, bool temporal,
                           const at::Tensor& output, at::Tensor& gradient) {
  const int64_t width = shape_.hidden.back();
  const dev::PenaltyPlace place{
      window.numbers.pointer<int32_t>(piece.targets),
      window.steps,
      piece.group.count,
      width,
      temporal ? penalty_.temporal_factor(width) : penalty_.activation_factor(width),
      output.const_data_ptr(),
      gradient.mutable_data_ptr()};
  temporal ? kernels_.elements.add_temporal_penalty(place) : kernels_.elements.add_activation_penalty(place);
}

// The head behind the projection, if there is one; the gradient by the layers' outputs.
at::Tensor DeviceModel::project_and_score(Window& window, const WindowPiece& piece,
                                          const at::Tensor& outputs) {
  if (!shape_.has_projection()) return head(window, piece, outputs);
  const at::Tensor& weight = parameter(head_word_ - 1).compute;
  const at::Tensor by_head = head(window, piece, at::mm(outputs, weight.t()));
  take_dense(window, head_word_ - 1, at::mm(by_head.t(), outputs));
  return at::mm(by_head, weight);
}

at::Tensor DeviceModel::head(Window& window, const WindowPiece& piece, const at::Tensor& hidden) {
  at::Tensor gradient = at::empty_like(hidden);
  for (const HeadChunk& chunk : piece.chunks) head_chunk(window, chunk, piece, hidden, gradient);
  return gradient;
}

void DeviceModel::head_chunk(Window& window, const HeadChunk& chunk, const WindowPiece& piece,
                             const at::Tensor& hidden, at::Tensor& hidden_gradient) {
  const int64_t dim = shape_.head_dim();
  const DeviceNumbers& numbers = window.numbers;
  WindowGradients& gradients = window.gradients;
  dev::HeadPass pass;
  pass.sizes = {chunk.tokens, layout_.words(),  layout_.shortlist(), layout_.clusters(),
                dim,          largest_cluster_, chunk.most_hit_rows};
  const at::Tensor scratch = at::empty({kernels_.elements.head_scratch_bytes(pass.sizes)}, of(at::kByte));
  const at::Tensor some = hidden.narrow(0, chunk.first, chunk.tokens);
  at::Tensor some_gradient = hidden_gradient.narrow(0, chunk.first, chunk.tokens);
  DeviceParameter& cluster = parameter(head_word_ + 2);
  DeviceParameter& cluster_bias = parameter(head_word_ + 3);
  pass.hidden = some.const_data_ptr();
  pass.word = parameter(head_word_).compute.const_data_ptr();
  pass.cluster = cluster.compute.const_data_ptr();
  pass.word_bias = parameter(head_word_ + 1).value.const_data_ptr<float>();
  pass.cluster_bias = cluster_bias.value.const_data_ptr<float>();
  pass.cluster_offsets = cluster_offsets_.const_data_ptr<int64_t>();
  pass.cluster_of_row = cluster_of_row_.const_data_ptr<int32_t>();
  pass.targets = numbers.pointer<int32_t>(piece.targets) + chunk.first;
  pass.scale = numbers.pointer<float>(window.rows.scale);
  pass.scratch = scratch.mutable_data_ptr();
  pass.loss = gradients.losses.mutable_data_ptr<float>() + window.passes;
  pass.hidden_gradient = some_gradient.mutable_data_ptr();

  // A pass that gives everything writes where the update reads; else it is added there.
  const bool direct = window.rows.one_pass() && !shape_.tied;
  const bool first = window.passes == 0;
  const int64_t most = layout_.shortlist() + chunk.most_hit_rows;
  at::Tensor word = direct ? gradients.word : at::empty({most, dim}, of(at::kFloat));
  at::Tensor bias = direct ? gradients.word_bias : at::empty({most}, of(at::kFloat));
  at::Tensor clusters = first ? cluster.gradient : at::empty_like(cluster.gradient);
  at::Tensor clusters_bias = first ? cluster_bias.gradient : at::empty_like(cluster_bias.gradient);
  pass.word_gradient = word.mutable_data_ptr<float>();
  pass.word_bias_gradient = bias.mutable_data_ptr<float>();
  pass.cluster_gradient = clusters.mutable_data_ptr<float>();
  pass.cluster_bias_gradient = clusters_bias.mutable_data_ptr<float>();
  kernels_.elements.head(pass);
  if (!direct) {
    const int32_t* places = numbers.pointer<int32_t>(chunk.places);
    kernels_.elements.add_rows(pass.word_gradient, places, dim, chunk.places.count,
                               gradients.word.mutable_data_ptr<float>());
    kernels_.elements.add_rows(pass.word_bias_gradient, places, 1, chunk.places.count,
                               gradients.word_bias.mutable_data_ptr<float>());
  }
  if (!first) {
    cluster.gradient.add_(clusters);
    cluster_bias.gradient.add_(clusters_bias);
  }
  ++window.passes;
}

void DeviceModel::embedding_gradient(Window& window, const WindowPiece& piece, const at::Tensor& gradient) {
  const int64_t width = shape_.embedding;
  const int64_t distinct = piece.places.count;
  const DeviceNumbers& numbers = window.numbers;
  const bool direct = window.rows.pieces.size() == 1 && !shape_.tied;
  at::Tensor& all = shape_.tied ? window.gradients.word : window.gradients.embedding;
  at::Tensor sums = direct ? all : at::empty({distinct, width}, of(at::kFloat));
  kernels_.elements.sum_rows(gradient.const_data_ptr(), width, numbers.pointer<int32_t>(piece.order),
                             numbers.pointer<int32_t>(piece.starts),
                             piece.scales.count > 0 ? numbers.pointer<float>(piece.scales) : nullptr,
                             distinct, sums.mutable_data_ptr<float>());
  if (direct) return;
  kernels_.elements.add_rows(sums.const_data_ptr<float>(), numbers.pointer<int32_t>(piece.places), width,
                             distinct, all.mutable_data_ptr<float>());
}

void DeviceModel::take_dense(const Window& window, size_t index, const at::Tensor& gradient) {
  at::Tensor& own = parameter(index).gradient;
  if (window.first_piece) {
    own.copy_(gradient);
  } else {
    own.add_(gradient);
  }
}

}  // namespace hsm
