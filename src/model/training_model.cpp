#include "model/training_model.h"

#include <algorithm>
#include <numeric>
#include <optional>

#include "base/random.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/gemm.h"
#include "kernels/head.h"
#include "model/activation_penalty.h"
#include "model/gradient_sum.h"

namespace hsm {
namespace {

constexpr int64_t kRowTile = 64;

using Buffer = std::vector<float>;

std::span<float> sized(Buffer& buffer, int64_t count) {
  buffer.resize(static_cast<size_t>(count));
  return buffer;
}

int64_t element_count(const std::vector<int64_t>& shape) {
  return std::accumulate(shape.begin(), shape.end(), int64_t{1}, std::multiplies<>());
}

// Calls body(first, count) for tiles of rows.
template <class Body>
void for_each_tile(int64_t rows, ThreadPool& pool, const Body& body) {
  pool.run((rows + kRowTile - 1) / kRowTile, [&](int64_t tile, int) {
    const int64_t first = tile * kRowTile;
    body(first, std::min(kRowTile, rows - first));
  });
}

}  // namespace

struct TrainingModel::Impl {
  Impl(const ModelConfig& config, ModelShape model_shape, HeadLayout head_layout, uint64_t model_seed,
       ThreadPool& threads, const RecurrentStackFactory& make_stack)
      : shape(std::move(model_shape)),
        layout(std::move(head_layout)),
        dropout(config.dropout),
        penalty(config.regularization.activation, config.regularization.temporal),
        seed(model_seed),
        pool(threads) {
    make_parameters(config);
    std::vector<float*> recurrent;
    thinned.resize(values.size());
    for (size_t i = first_recurrent; i < after_recurrent; ++i) {
      if (drops_weights(i)) sized(thinned[i], static_cast<int64_t>(values[i].size()));
      recurrent.push_back(drops_weights(i) ? thinned[i].data() : values[i].data());
    }
    stack = make_stack(shape, recurrent, pool);
  }

  void make_parameters(const ModelConfig& config) {
    const auto specs = parameter_specs(shape);
    values.resize(specs.size());
    gradients.resize(specs.size());
    first_recurrent = specs.size();
    for (size_t i = 0; i < specs.size(); ++i) {
      const auto& [name, extents] = specs[i];
      Buffer& value = values[i];
      draw_initial_values(i, initial_range(config, name), seed, sized(value, element_count(extents)));
      Parameter parameter{name, extents, value, {}, nullptr, 0};
      if (name == "embedding.weight") {
        parameter.rows = &embedding_gradient;
      } else if (name == "head.word.weight") {
        head_word = i;
        parameter.rows = shape.tied ? &tied_gradient : &word_gradient;
      } else if (name == "head.word.bias") {
        parameter.rows = shape.tied ? &tied_gradient : &word_gradient;
        parameter.row_offset = shape.head_dim();
      } else {
        parameter.gradient = sized(gradients[i], element_count(extents));
      }
      if (name.starts_with("rnn.")) {
        first_recurrent = std::min(first_recurrent, i);
        after_recurrent = i + 1;
      }
      parameters.push_back(std::move(parameter));
    }
  }

  void cut(const StepPieces& how) {
    pieces = how;
    std::vector<std::span<float>> dense;
    for (const Parameter& parameter : parameters) {
      if (parameter.rows == nullptr) dense.push_back(parameter.gradient);
    }
    std::vector<kernels::RowGradients<float>*> rows{&tied_gradient};
    if (!shape.tied) rows = {&embedding_gradient, &word_gradient};
    window_sum.emplace(std::move(dense), std::move(rows), pool);
    head_sum.emplace(std::vector<std::span<float>>{gradients[head_word + 2], gradients[head_word + 3]},
                     std::vector{&word_gradient}, pool);
  }

  void leave_factors() {
    if (shape.tied || pieces.micro_batches > 1 || pieces.head_chunk > 0) return;
    parameters[head_word].factors = &leaf_factors;
  }

  // ---- one window ----

  double step(const Batch& batch, const StepPosition& position, float scale) {
    const std::span<float> states = carried(batch.streams);
    if (batch.starts) std::ranges::fill(states, 0.0F);
    thin_weights(position);
    penalty.begin_window(batch, scale);
    if (pieces.micro_batches == 1) return run(batch, 0, position, scale);
    const auto parts = group_streams(batch.streams, pieces.micro_batches);
    double loss = 0;
    for (size_t i = 0; i < parts.size(); ++i) {
      loss += run(part_of(batch, parts[i]), parts[i].first, position, scale);
      i + 1 < parts.size() ? window_sum->add() : window_sum->finish();
    }
    return loss;
  }

  // All streams of `batch`, the first of which is the window's `first`.
  double run(const Batch& batch, int64_t first, const StepPosition& position, float scale) {
    tokens = batch.steps * batch.streams;
    streams = batch.streams;
    first_stream = first;
    steps = batch.steps;
    look_up(batch, position);
    drop(Purpose::dropout_input, dropout.input, shape.embedding, position, inputs);

    sized(outputs, tokens * shape.hidden.back());
    stack->forward({steps,
                    streams,
                    inputs.data(),
                    shares_inputs() ? &groups : nullptr,
                    state.data() + first * shape.state_size(),
                    outputs.data(),
                    {dropout.hidden, dropout.locked, seed, position.step, first}});
    const int64_t width = shape.hidden.back();
    if (penalty.temporal()) {
      penalty.find_temporal(batch, width, outputs, sized(temporal_gradient, tokens * width), pool);
    }
    drop(Purpose::dropout_output, dropout.output, width, position, outputs);

    const double loss = head(scale);
    Buffer& output_gradient = shape.has_projection() ? project_back() : head_input_gradient;
    if (penalty.activation()) penalty.add_activation(batch, width, outputs, output_gradient, pool);
    drop(Purpose::dropout_output, dropout.output, width, position, output_gradient);
    if (penalty.temporal()) {
      for (size_t i = 0; i < output_gradient.size(); ++i) output_gradient[i] += temporal_gradient[i];
    }

    std::vector<float*> recurrent;
    for (size_t i = first_recurrent; i < after_recurrent; ++i) recurrent.push_back(gradients[i].data());
    embedding_backward(output_gradient, recurrent, position);
    for (size_t i = first_recurrent; i < after_recurrent; ++i) {
      if (drops_weights(i)) thin(i, position, gradients[i]);
    }
    if (shape.tied) kernels::merge_rows(embedding_gradient, word_gradient, tied_gradient, pool);
    return loss;
  }

  // Weight drop: the layers compute with a thinned copy of their recurrent weights, the same for all parts of
  // a window, and the gradient passes through the same mask.
  [[nodiscard]] bool drops_weights(size_t parameter) const {
    return dropout.weight > 0 && parameters[parameter].name.starts_with("rnn.weight_hh");
  }
  void thin(size_t parameter, const StepPosition& position, Buffer& buffer) {
    const std::vector<int64_t>& extents = parameters[parameter].shape;
    kernels::apply_dropout(
        {extents[0], 1, extents[1]}, dropout.weight, false,
        {seed, Purpose::dropout_weight, position.step, static_cast<int64_t>(parameter - first_recurrent)},
        buffer.data(), pool);
  }
  void thin_weights(const StepPosition& position) {
    for (size_t i = first_recurrent; i < after_recurrent; ++i) {
      if (!drops_weights(i)) continue;
      std::ranges::copy(values[i], thinned[i].begin());
      thin(i, position, thinned[i]);
    }
  }

  std::span<float> carried(int64_t count) { return sized(state, count * shape.state_size()); }

  // Without dropout between them, the first layer is given each distinct vector once.
  [[nodiscard]] bool shares_inputs() const { return dropout.input == 0; }

  // Words become rows of the head, which the embedding shares, and their vectors the stack's input.
  void look_up(const Batch& batch, const StepPosition& position) {
    input_rows.resize(static_cast<size_t>(tokens));
    target_rows.resize(static_cast<size_t>(tokens));
    for (size_t i = 0; i < input_rows.size(); ++i) {
      input_rows[i] = layout.row_of_word[static_cast<size_t>(batch.inputs[i])];
      const int32_t target = batch.targets[i];
      target_rows[i] = target == kNoTarget ? -1 : layout.row_of_word[static_cast<size_t>(target)];
    }
    groups.assign(input_rows);
    const std::vector<int64_t>& rows = shares_inputs() ? groups.rows : input_rows;
    input_scales.clear();
    if (dropout.embedding > 0) {
      // A dropped row is dropped wherever the window reads it.
      const CounterRandom random(seed, Purpose::dropout_embedding_rows);
      const auto kept = static_cast<float>(1 / (1 - dropout.embedding));
      for (const int64_t row : rows) {
        const double draw = random.uniform(static_cast<uint64_t>(position.step), static_cast<uint64_t>(row));
        input_scales.push_back(draw < dropout.embedding ? 0.0F : kept);
      }
    }
    sized(inputs, static_cast<int64_t>(rows.size()) * shape.embedding);
    kernels::gather_rows(values[shape.tied ? head_word : 0].data(), shape.embedding, rows, input_scales,
                         inputs.data(), pool);
  }

  // The layers' gradients, and that by the embedding's rows.
  void embedding_backward(const Buffer& output_gradient, std::span<float* const> recurrent,
                          const StepPosition& position) {
    if (!shares_inputs()) {
      sized(input_gradient, tokens * shape.embedding);
      stack->backward(output_gradient.data(), input_gradient.data(), recurrent);
      drop(Purpose::dropout_input, dropout.input, shape.embedding, position, input_gradient);
      kernels::scatter_rows(groups, input_scales, input_gradient.data(), shape.embedding, embedding_gradient,
                            pool);
      return;
    }
    embedding_gradient.width = shape.embedding;
    embedding_gradient.rows = groups.rows;
    sized(embedding_gradient.values, groups.size() * shape.embedding);
    stack->backward(output_gradient.data(), embedding_gradient.values.data(), recurrent);
    for (size_t row = 0; row < input_scales.size(); ++row) {
      float* gradient = embedding_gradient.values.data() + static_cast<int64_t>(row) * shape.embedding;
      for (int64_t u = 0; u < shape.embedding; ++u) gradient[u] *= input_scales[row];
    }
  }

  // Forward and backward alike: the mask is a function of the position.
  void drop(Purpose purpose, double probability, int64_t width, const StepPosition& position,
            Buffer& buffer) {
    kernels::apply_dropout({steps, streams, width, first_stream}, probability, dropout.locked,
                           {seed, purpose, position.step, 0}, buffer.data(), pool);
  }

  double head(float scale) {
    const float* input = outputs.data();
    if (shape.has_projection()) {
      const int64_t width = shape.hidden.back();
      projection.assign(values[after_recurrent].data(), shape.head_dim(), width, &pool);
      sized(projected, tokens * shape.head_dim());
      for_each_tile(tokens, pool, [&](int64_t first, int64_t count) {
        kernels::gemm_packed<float>(count, outputs.data() + first * width, width, projection, nullptr, false,
                                    projected.data() + first * shape.head_dim(), shape.head_dim());
      });
      input = projected.data();
    }
    sized(head_input_gradient, tokens * shape.head_dim());
    const int64_t chunk = pieces.head_chunk == 0 ? tokens : pieces.head_chunk;
    if (tokens <= chunk) return head_tokens(input, 0, tokens, scale);
    double loss = 0;
    for (int64_t first = 0; first < tokens; first += chunk) {
      loss += head_tokens(input, first, std::min(chunk, tokens - first), scale);
      first + chunk < tokens ? head_sum->add() : head_sum->finish();
    }
    return loss;
  }

  double head_tokens(const float* input, int64_t first, int64_t count, float scale) {
    const kernels::HeadShape head_shape{layout.words(), layout.shortlist(), shape.head_dim(),
                                        layout.cluster_offsets, layout.cluster_of_row};
    const kernels::HeadWeights<float> weights{values[head_word].data(), values[head_word + 1].data(),
                                              values[head_word + 2].data(), values[head_word + 3].data()};
    const kernels::HeadGradients<float> head_gradients{
        head_input_gradient.data() + first * shape.head_dim(), &word_gradient,
        gradients[head_word + 2].data(), gradients[head_word + 3].data(), parameters[head_word].factors};
    const std::span<const int64_t> targets(target_rows);
    return kernels::head_loss(head_shape, weights, input + first * shape.head_dim(),
                              targets.subspan(static_cast<size_t>(first), static_cast<size_t>(count)), scale,
                              &head_gradients, head_workspace, pool);
  }

  // From the gradient by the head's input: that by the projection, and (returned) by the layers' output.
  Buffer& project_back() {
    const int64_t width = shape.hidden.back();
    const int64_t dim = shape.head_dim();
    sized(unprojected, tokens * width);
    for_each_tile(tokens, pool, [&](int64_t first, int64_t count) {
      kernels::gemm_nn(count, width, dim, head_input_gradient.data() + first * dim, dim,
                       values[after_recurrent].data(), width, false, unprojected.data() + first * width,
                       width);
    });
    for_each_tile(dim, pool, [&](int64_t first, int64_t count) {
      kernels::gemm_tn(count, width, tokens, head_input_gradient.data() + first, dim, outputs.data(), width,
                       false, gradients[after_recurrent].data() + first * width, width);
    });
    return unprojected;
  }

  ModelShape shape;
  HeadLayout layout;
  DropoutConfig dropout;
  ActivationPenalty penalty;
  uint64_t seed;
  ThreadPool& pool;

  std::vector<Buffer> values;
  std::vector<Buffer> thinned;    // recurrent weights after weight drop; the others are empty
  std::vector<Buffer> gradients;  // dense ones; empty where rows hold it
  std::vector<Parameter> parameters;
  size_t first_recurrent = 0;  // indices into the above; the projection, if any, stands at after_recurrent
  size_t after_recurrent = 0;
  size_t head_word = 0;  // head.word.weight, then its bias, head.cluster.weight and its bias
  std::unique_ptr<RecurrentStack> stack;
  Buffer state;
  StepPieces pieces;
  std::optional<GradientSum> window_sum;  // there once steps are cut
  std::optional<GradientSum> head_sum;

  // Of the window at hand; kept only to be used again.
  int64_t tokens = 0;
  int64_t streams = 0;
  int64_t first_stream = 0;
  int64_t steps = 0;
  std::vector<int64_t> input_rows;
  std::vector<int64_t> target_rows;
  kernels::RowGroups groups;        // of input_rows
  std::vector<float> input_scales;  // of the rows that are looked up; empty without dropout of rows
  kernels::PackedMatrix<float> projection;
  kernels::HeadWorkspace<float> head_workspace;
  Buffer inputs, outputs, projected, head_input_gradient, unprojected, input_gradient, temporal_gradient;
  kernels::RowGradients<float> embedding_gradient, word_gradient, tied_gradient;
  kernels::LeafFactors<float> leaf_factors;
};

TrainingModel::TrainingModel(const ModelConfig& config, ModelShape shape, HeadLayout layout, uint64_t seed,
                             ThreadPool& pool, const RecurrentStackFactory& make_stack)
    : impl_(std::make_unique<Impl>(config, std::move(shape), std::move(layout), seed, pool, make_stack)) {}

TrainingModel::~TrainingModel() = default;

const ModelShape& TrainingModel::shape() const noexcept {
  return impl_->shape;
}
const HeadLayout& TrainingModel::layout() const noexcept {
  return impl_->layout;
}
std::span<Parameter> TrainingModel::parameters() noexcept {
  return impl_->parameters;
}

WeightView TrainingModel::weight_view() const {
  WeightView view;
  for (const Buffer& value : impl_->values) view.tensors.push_back(value.data());
  return view;
}

std::span<float> TrainingModel::carried_state(int64_t streams) {
  return impl_->carried(streams);
}

void TrainingModel::cut_steps(const StepPieces& pieces) {
  impl_->cut(pieces);
}

void TrainingModel::leave_factors() {
  impl_->leave_factors();
}

double TrainingModel::step(const Batch& batch, const StepPosition& position, float scale) {
  return impl_->step(batch, position, scale);
}

}  // namespace hsm
