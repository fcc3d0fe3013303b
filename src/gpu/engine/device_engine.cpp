#include "gpu/engine/device_engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <bit>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/random.h"
#include "gpu/engine/device_parameters.h"
#include "gpu/engine/device_text_scorer.h"
#include "gpu/engine/recurrent_layers.h"
#include "gpu/engine/window_rows.h"
#include "kernels/optimizer_kernels.h"
#include "train/loss_scaler.h"

namespace hsm {
namespace {

namespace dev = kernels::device;
using dev::Precision;
using dev::StepOutcome;

constexpr int64_t kLookahead = 1;
constexpr const char* kLossScale = "loss_scale";

at::ScalarType element_of(Precision precision) {
  switch (dev::element_type(precision)) {
    case dev::ElementType::bf16:
      return at::kBFloat16;
    case dev::ElementType::f16:
      return at::kHalf;
    default:
      return at::kFloat;
  }
}

at::Device device_of(int cuda_device) {
  return cuda_device < 0 ? at::Device(at::kCPU) : at::Device(at::kCUDA, static_cast<int8_t>(cuda_device));
}

/// Host memory that copies to and from the device pass through, one a step that may be pending.
struct Slot {
  at::Tensor numbers;  ///< int32, what the window's kernels are told
  at::Tensor outcome;  ///< bytes of a StepOutcome
  std::optional<c10::Event> done;
};

struct Pending {
  StepPosition position;
  int64_t targets = 0;
  size_t slot = 0;
};

class DeviceEngine final : public TrainingEngine {
 public:
  DeviceEngine(const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool, EnginePlace place)
      : config_(config),
        shape_(std::move(shape)),
        layout_(std::move(layout)),
        precision_(place.precision),
        kernels_(std::move(place.kernels)),
        scoring_kernels_(std::move(place.scoring_kernels)),
        device_(device_of(place.cuda_device)),
        elements_(at::TensorOptions().device(device_).dtype(element_of(place.precision))),
        options_(options_of(config.train.optimizer)),
        dense_(kernels::needs_catch_up(options_)),
        lister_(layout_, {config.train.micro_batches, config.train.head_chunk}, shape_.tied, dense_),
        parameters_(config, shape_, pool, elements_),
        layers_(shape_, recurrent_weights()),
        scaler_(kLookahead) {
    at::set_num_threads(pool.threads());
    head_word_ = index_of("head.word.weight");
    cluster_offsets_ =
        to_device(at::from_blob(layout_.cluster_offsets.data(), {layout_.clusters() + 1}, at::kLong));
    cluster_of_row_ = to_device(at::from_blob(layout_.cluster_of_row.data(), {layout_.words()}, at::kInt));
    outcome_ = at::empty({static_cast<int64_t>(sizeof(StepOutcome))}, bytes());
    norm_scratch_ = at::empty({dev::DeviceKernels::kNormScratch}, of(at::kDouble));
    squares_ = at::empty({kGradients}, of(at::kDouble));
    for (Slot& slot : slots_)
      slot.outcome = host_memory(static_cast<int64_t>(sizeof(StepOutcome)), at::kByte);
  }

  [[nodiscard]] const ModelShape& shape() const noexcept override { return shape_; }
  [[nodiscard]] const HeadLayout& layout() const noexcept override { return layout_; }
  [[nodiscard]] int64_t lookahead() const noexcept override { return kLookahead; }
  [[nodiscard]] int64_t pending() const noexcept override { return static_cast<int64_t>(pending_.size()); }

  void begin_step(const Batch& batch, const StepOptions& options) override;
  StepResult finish_step() override;

  void settle() override {}  // every update brings all rows up to date
  WeightView weights() override { return parameters_.weights(); }
  std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence) override {
    std::vector<at::Tensor> weights;
    for (const DeviceParameter& each : parameters_.all()) weights.push_back(each.value);
    return std::make_unique<DeviceTextScorer>(shape_, layout_, std::move(weights), scoring_kernels_,
                                              end_of_sentence);
  }
  void append_state(std::vector<StateTensor>& tensors) override;
  void restore(const Checkpoint& checkpoint) override;

 private:
  static constexpr int64_t kGradients = 4;  // dense ones, the embedding's, the words' weights and biases

  // ---- memory

  [[nodiscard]] at::TensorOptions of(at::ScalarType type) const { return elements_.dtype(type); }
  [[nodiscard]] at::TensorOptions bytes() const { return of(at::kByte); }
  [[nodiscard]] at::Tensor to_device(const at::Tensor& host) const {
    return at::empty(host.sizes(), of(host.scalar_type())).copy_(host);
  }
  [[nodiscard]] at::Tensor host_memory(int64_t count, at::ScalarType type) const {
    return at::empty({count}, at::TensorOptions().dtype(type).pinned_memory(device_.is_cuda()));
  }
  [[nodiscard]] size_t index_of(const std::string& name) {
    const auto& all = parameters_.all();
    size_t i = 0;
    while (all[i].name != name) ++i;
    return i;
  }
  [[nodiscard]] std::vector<at::Tensor> recurrent_weights() {
    std::vector<at::Tensor> weights;
    for (size_t i = 0; i < parameters_.all().size(); ++i) {
      if (!parameters_.all()[i].name.starts_with("rnn.")) continue;
      if (weights.empty()) first_recurrent_ = i;
      weights.push_back(parameters_.all()[i].compute);
    }
    return weights;
  }

  // ---- one window

  void upload(WindowRows& rows, const StepOptions& options, double loss_scale, const Batch& batch);
  template <class T>
  [[nodiscard]] const T* numbers(NumberRange range) const {
    return reinterpret_cast<const T*>(numbers_.const_data_ptr<int32_t>() + range.first);
  }
  NumberRange append_scales(const WindowPiece& piece, const StepOptions& options,
                            std::vector<int32_t>& all) const;
  void make_gradients(const WindowRows& rows);
  void run_piece(const WindowRows& rows, size_t piece, const Batch& batch, const StepPosition& position);
  at::Tensor look_up(const WindowPiece& piece, NumberRange scales, int64_t steps);
  at::Tensor head(const WindowRows& rows, const WindowPiece& piece, const at::Tensor& hidden);
  void head_chunk(const WindowRows& rows, const HeadChunk& chunk, const WindowPiece& piece,
                  const at::Tensor& hidden, at::Tensor& hidden_gradient);
  void embedding_gradient(const WindowRows& rows, const WindowPiece& piece, NumberRange scales,
                          const at::Tensor& gradient);
  void drop(Purpose purpose, double probability, int64_t layer, const WindowPiece& piece, int64_t units,
            int64_t step, at::Tensor& values);
  void take_dense(size_t index, const at::Tensor& gradient);
  void clip(int64_t head_rows, double loss_scale);
  void update(const WindowRows& rows, double learning_rate);
  void update_one(const dev::UpdateValues<void>& common, DeviceParameter& parameter, const float* gradient,
                  NumberRange rows, NumberRange places);
  void send_outcome(Slot& slot);

  [[nodiscard]] DeviceParameter& parameter(size_t index) { return parameters_.all()[index]; }

  Config config_;
  ModelShape shape_;
  HeadLayout layout_;
  Precision precision_;
  std::unique_ptr<dev::DeviceKernels> kernels_;
  std::shared_ptr<dev::DeviceKernels> scoring_kernels_;
  at::Device device_;
  at::TensorOptions elements_;
  kernels::OptimizerOptions options_;
  bool dense_;  // the optimiser moves rows without a gradient, too
  WindowLister lister_;
  DeviceParameters parameters_;
  size_t first_recurrent_ = 0;
  size_t head_word_ = 0;  // then its bias, head.cluster.weight and its bias; the projection stands before it
  RecurrentLayers layers_;
  LossScaler scaler_;
  int64_t streams_ = 0;  // of the states; 0 before the first step
  int64_t steps_made_ = 0;

  at::Tensor cluster_offsets_, cluster_of_row_;
  at::Tensor outcome_, norm_scratch_, squares_;
  std::array<Slot, kLookahead + 1> slots_;
  std::deque<Pending> pending_;
  std::vector<double> scaler_state_;  // while a checkpoint is written
  at::Tensor states_;                 // likewise

  // Of the window at hand.
  at::Tensor numbers_;
  NumberRange scale_;                // the loss's factor, the bits of a float
  std::vector<NumberRange> scales_;  // of each piece's tokens; empty without dropout of rows
  at::Tensor losses_;                // of each pass of the head
  int64_t passes_ = 0;               // made so far
  at::Tensor embedding_gradient_;    // float32 [rows, embedding]
  at::Tensor word_gradient_;         // float32 [rows, dim]
  at::Tensor word_bias_gradient_;    // float32 [rows]
  bool first_piece_ = true;          // dense gradients are overwritten, else added to
  bool first_pass_ = true;           // the same for the clusters'
};

NumberRange DeviceEngine::append_scales(const WindowPiece& piece, const StepOptions& options,
                                        std::vector<int32_t>& all) const {
  const double dropped = config_.model.dropout.embedding;
  NumberRange range{static_cast<int64_t>(all.size()), 0};
  if (dropped == 0) return range;
  // A dropped row is dropped wherever the window reads it.
  const CounterRandom random(config_.train.seed, Purpose::dropout_embedding_rows);
  const auto kept = static_cast<float>(1 / (1 - dropped));
  range.count = piece.inputs.count;
  for (int64_t i = 0; i < piece.inputs.count; ++i) {
    const int32_t row = all[static_cast<size_t>(piece.inputs.first + i)];
    const double draw =
        random.uniform(static_cast<uint64_t>(options.position.step), static_cast<uint64_t>(row));
    all.push_back(std::bit_cast<int32_t>(draw < dropped ? 0.0F : kept));
  }
  return range;
}

// One copy, from memory that stays as it is until the step is finished.
void DeviceEngine::upload(WindowRows& rows, const StepOptions& options, double loss_scale,
                          const Batch& batch) {
  scales_.clear();
  for (const WindowPiece& piece : rows.pieces) scales_.push_back(append_scales(piece, options, rows.numbers));
  scale_ = {static_cast<int64_t>(rows.numbers.size()), 1};
  rows.numbers.push_back(std::bit_cast<int32_t>(static_cast<float>(options.scale * loss_scale)));

  const auto count = static_cast<int64_t>(rows.numbers.size());
  Slot& slot = slots_[static_cast<size_t>(steps_made_) % slots_.size()];
  if (!slot.numbers.defined() || slot.numbers.numel() < count) {
    slot.numbers = host_memory(count + count / 4, at::kInt);
  }
  at::Tensor staged = slot.numbers.narrow(0, 0, count);
  std::copy(rows.numbers.begin(), rows.numbers.end(), staged.mutable_data_ptr<int32_t>());
  numbers_ = at::empty({count}, of(at::kInt));
  numbers_.copy_(staged, true);
  pending_.push_back(
      {options.position, batch.target_count, static_cast<size_t>(steps_made_) % slots_.size()});
}

// Gradients of rows. What comes in several pieces is added up from zero; one pass fills them.
void DeviceEngine::make_gradients(const WindowRows& rows) {
  const int64_t dim = shape_.head_dim();
  int64_t head_rows = rows.head.count;
  if (rows.one_pass() && !shape_.tied) {
    head_rows = layout_.shortlist() + rows.pieces.front().chunks.front().most_hit_rows;
    word_gradient_ = at::empty({head_rows, dim}, of(at::kFloat));
    word_bias_gradient_ = at::empty({head_rows}, of(at::kFloat));
  } else {
    word_gradient_ = at::zeros({head_rows, dim}, of(at::kFloat));
    word_bias_gradient_ = at::zeros({head_rows}, of(at::kFloat));
  }
  if (!shape_.tied) embedding_gradient_ = at::zeros({rows.embedding.count, shape_.embedding}, of(at::kFloat));
  int64_t passes = 0;
  for (const WindowPiece& piece : rows.pieces) passes += static_cast<int64_t>(piece.chunks.size());
  losses_ = at::empty({passes}, of(at::kFloat));
  passes_ = 0;
  first_piece_ = first_pass_ = true;
}

void DeviceEngine::begin_step(const Batch& batch, const StepOptions& options) {
  WindowRows rows = lister_.list(batch);
  const double loss_scale = precision_ == Precision::fp16 ? scaler_.begin_step() : 1;
  upload(rows, options, loss_scale, batch);
  make_gradients(rows);
  layers_.begin_window(batch.streams, batch.starts);
  streams_ = batch.streams;
  for (size_t i = 0; i < rows.pieces.size(); ++i) {
    run_piece(rows, i, batch, options.position);
    first_piece_ = false;
  }
  ++steps_made_;
  clip(rows.head.count, loss_scale);
  update(rows, options.learning_rate);
  send_outcome(slots_[pending_.back().slot]);
}

void DeviceEngine::run_piece(const WindowRows& rows, size_t index, const Batch& batch,
                             const StepPosition& position) {
  const WindowPiece& piece = rows.pieces[index];
  const DropoutConfig& dropout = config_.model.dropout;
  const RecurrentLayers::Drop between = [&](size_t layer, at::Tensor& values) {
    drop(Purpose::dropout_hidden, dropout.hidden, static_cast<int64_t>(layer), piece,
         shape_.layer_input(layer), position.step, values);
  };
  const RecurrentLayers::Drop* hidden = dropout.hidden > 0 ? &between : nullptr;
  const int64_t width = shape_.hidden.back();

  at::Tensor x = look_up(piece, scales_[index], batch.steps);
  drop(Purpose::dropout_input, dropout.input, 0, piece, shape_.embedding, position.step, x);
  at::Tensor y = layers_.forward(x, piece.group, hidden);
  if (dropout.output > 0) y = y.clone();  // the layer's own output is read again
  y = y.contiguous();
  drop(Purpose::dropout_output, dropout.output, 0, piece, width, position.step, y);

  const at::Tensor outputs = y.view({piece.tokens, width});
  at::Tensor gradient;
  if (shape_.has_projection()) {
    const at::Tensor& weight = parameter(head_word_ - 1).compute;
    const at::Tensor by_head = head(rows, piece, at::mm(outputs, weight.t()));
    take_dense(head_word_ - 1, at::mm(by_head.t(), outputs));
    gradient = at::mm(by_head, weight);
  } else {
    gradient = head(rows, piece, outputs);
  }
  drop(Purpose::dropout_output, dropout.output, 0, piece, width, position.step, gradient);
  gradient = layers_.backward(gradient.view(y.sizes()), hidden, [&](size_t weight, const at::Tensor& g) {
    take_dense(first_recurrent_ + weight, g);
  });
  drop(Purpose::dropout_input, dropout.input, 0, piece, shape_.embedding, position.step, gradient);
  embedding_gradient(rows, piece, scales_[index], gradient);
}

at::Tensor DeviceEngine::look_up(const WindowPiece& piece, NumberRange scales, int64_t steps) {
  at::Tensor x = at::empty({steps, piece.group.count, shape_.embedding}, elements_);
  const at::Tensor& table = parameter(shape_.tied ? head_word_ : index_of("embedding.weight")).compute;
  kernels_->gather_rows(table.const_data_ptr(), shape_.embedding, numbers<int32_t>(piece.inputs),
                        scales.count > 0 ? numbers<float>(scales) : nullptr, piece.tokens,
                        x.mutable_data_ptr());
  return x;
}

void DeviceEngine::drop(Purpose purpose, double probability, int64_t layer, const WindowPiece& piece,
                        int64_t units, int64_t step, at::Tensor& values) {
  kernels_->dropout(
      {config_.train.seed, static_cast<uint32_t>(purpose), step, layer, piece.tokens / piece.group.count,
       piece.group.count, piece.group.first, units, probability, config_.model.dropout.locked},
      values.mutable_data_ptr());
}

at::Tensor DeviceEngine::head(const WindowRows& rows, const WindowPiece& piece, const at::Tensor& hidden) {
  at::Tensor gradient = at::empty_like(hidden);
  for (const HeadChunk& chunk : piece.chunks) head_chunk(rows, chunk, piece, hidden, gradient);
  return gradient;
}

void DeviceEngine::head_chunk(const WindowRows& rows, const HeadChunk& chunk, const WindowPiece& piece,
                              const at::Tensor& hidden, at::Tensor& hidden_gradient) {
  const int64_t dim = shape_.head_dim();
  dev::HeadPass pass;
  pass.sizes = {chunk.tokens, layout_.words(),           layout_.shortlist(), layout_.clusters(),
                dim,          lister_.largest_cluster(), chunk.most_hit_rows};
  const at::Tensor scratch = at::empty({kernels_->head_scratch_bytes(pass.sizes)}, bytes());
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
  pass.targets = numbers<int32_t>(piece.targets) + chunk.first;
  pass.scale = numbers<float>(scale_);
  pass.scratch = scratch.mutable_data_ptr();
  pass.loss = losses_.mutable_data_ptr<float>() + passes_++;
  pass.hidden_gradient = some_gradient.mutable_data_ptr();

  // A pass that gives everything writes where the update reads; else it is added there.
  const bool direct = rows.one_pass() && !shape_.tied;
  const int64_t most = layout_.shortlist() + chunk.most_hit_rows;
  at::Tensor word = direct ? word_gradient_ : at::empty({most, dim}, of(at::kFloat));
  at::Tensor bias = direct ? word_bias_gradient_ : at::empty({most}, of(at::kFloat));
  at::Tensor clusters = first_pass_ ? cluster.gradient : at::empty_like(cluster.gradient);
  at::Tensor clusters_bias = first_pass_ ? cluster_bias.gradient : at::empty_like(cluster_bias.gradient);
  pass.word_gradient = word.mutable_data_ptr<float>();
  pass.word_bias_gradient = bias.mutable_data_ptr<float>();
  pass.cluster_gradient = clusters.mutable_data_ptr<float>();
  pass.cluster_bias_gradient = clusters_bias.mutable_data_ptr<float>();
  kernels_->head(pass);
  if (!direct) {
    const int32_t* places = numbers<int32_t>(chunk.places);
    kernels_->add_rows(pass.word_gradient, places, dim, chunk.places.count,
                       word_gradient_.mutable_data_ptr<float>());
    kernels_->add_rows(pass.word_bias_gradient, places, 1, chunk.places.count,
                       word_bias_gradient_.mutable_data_ptr<float>());
  }
  if (!first_pass_) {
    cluster.gradient.add_(clusters);
    cluster_bias.gradient.add_(clusters_bias);
  }
  first_pass_ = false;
}

void DeviceEngine::embedding_gradient(const WindowRows& rows, const WindowPiece& piece, NumberRange scales,
                                      const at::Tensor& gradient) {
  const int64_t width = shape_.embedding;
  const int64_t distinct = piece.places.count;
  const bool direct = rows.pieces.size() == 1 && !shape_.tied;
  at::Tensor sums = direct ? embedding_gradient_ : at::empty({distinct, width}, of(at::kFloat));
  kernels_->sum_rows(gradient.const_data_ptr(), width, numbers<int32_t>(piece.order),
                     numbers<int32_t>(piece.starts), scales.count > 0 ? numbers<float>(scales) : nullptr,
                     distinct, sums.mutable_data_ptr<float>());
  if (direct) return;
  at::Tensor& all = shape_.tied ? word_gradient_ : embedding_gradient_;
  kernels_->add_rows(sums.const_data_ptr<float>(), numbers<int32_t>(piece.places), width, distinct,
                     all.mutable_data_ptr<float>());
}

void DeviceEngine::take_dense(size_t index, const at::Tensor& gradient) {
  at::Tensor& own = parameter(index).gradient;
  if (first_piece_) {
    own.copy_(gradient);
  } else {
    own.add_(gradient);
  }
}

// ---- clipping and update

void DeviceEngine::clip(int64_t head_rows, double loss_scale) {
  int64_t count = 0;
  const auto add = [&](const at::Tensor& gradient, int64_t values) {
    kernels_->sum_of_squares({gradient.const_data_ptr<float>(), values},
                             squares_.mutable_data_ptr<double>() + count++,
                             norm_scratch_.mutable_data_ptr<double>());
  };
  add(parameters_.gradients(), parameters_.gradients().numel());
  add(word_gradient_, head_rows * shape_.head_dim());
  add(word_bias_gradient_, head_rows);
  if (!shape_.tied) add(embedding_gradient_, embedding_gradient_.numel());
  kernels_->clip_norm({squares_.const_data_ptr<double>(), count, losses_.const_data_ptr<float>(), passes_,
                       config_.train.clip_norm, loss_scale,
                       static_cast<StepOutcome*>(outcome_.mutable_data_ptr())});
}

void DeviceEngine::update(const WindowRows& rows, double learning_rate) {
  dev::UpdateValues<void> common{};
  common.rule = kernels::make_rule(options_, steps_made_, learning_rate, 1);
  common.outcome = static_cast<const StepOutcome*>(outcome_.const_data_ptr());
  for (DeviceParameter& each : parameters_.all()) {
    if (!each.sparse) {
      update_one(common, each, each.gradient.const_data_ptr<float>(), {}, {});
    } else if (each.name == "embedding.weight") {
      update_one(common, each, embedding_gradient_.const_data_ptr<float>(), rows.embedding,
                 rows.embedding_places);
    } else {
      const at::Tensor& gradient = each.name == "head.word.bias" ? word_bias_gradient_ : word_gradient_;
      update_one(common, each, gradient.const_data_ptr<float>(), rows.head, rows.head_places);
    }
  }
}

void DeviceEngine::update_one(const dev::UpdateValues<void>& common, DeviceParameter& each,
                              const float* gradient, NumberRange rows, NumberRange places) {
  const auto pointer = [](const at::Tensor& moment) {
    return moment.defined() ? moment.mutable_data_ptr<float>() : nullptr;
  };
  dev::UpdateValues<void> values = common;
  values.gradient = gradient;
  values.width = each.width();
  values.value = each.value.mutable_data_ptr<float>();
  values.first = pointer(each.first);
  values.second = pointer(each.second);
  values.copy = each.copy();
  int64_t count = each.value.numel();
  if (each.sparse && dense_) {
    values.places = numbers<int32_t>(places);
  } else if (each.sparse) {
    values.rows = numbers<int32_t>(rows);
    count = rows.count * values.width;
  }
  kernels_->update(values, count);
}

void DeviceEngine::send_outcome(Slot& slot) {
  slot.outcome.copy_(outcome_, true);
  if (!device_.is_cuda()) return;
  const c10::impl::VirtualGuardImpl guard(device_.type());
  slot.done.emplace(device_.type());
  slot.done->record(guard.getStream(device_));
}

StepResult DeviceEngine::finish_step() {
  const Pending step = pending_.front();
  pending_.pop_front();
  const Slot& slot = slots_[step.slot];
  if (slot.done) slot.done->synchronize();
  const auto& outcome = *static_cast<const StepOutcome*>(slot.outcome.const_data_ptr());
  StepResult result{step.position, step.targets, outcome.loss, outcome.norm, false};
  if (precision_ == Precision::fp16) {
    const bool overflow = outcome.ok == 0;
    result.skipped = scaler_.finish_step(overflow) && overflow && std::isfinite(outcome.loss);
  }
  return result;
}

// ---- checkpoints

void DeviceEngine::append_state(std::vector<StateTensor>& tensors) {
  parameters_.append_state(steps_made_, tensors);
  if (streams_ > 0) {
    states_ = layers_.states();
    tensors.push_back(
        {"carried_state", DType::f32, {streams_, shape_.state_size()}, states_.mutable_data_ptr<float>()});
  }
  if (precision_ != Precision::fp16) return;
  scaler_state_ = scaler_.state();
  tensors.push_back(
      {kLossScale, DType::f64, {static_cast<int64_t>(scaler_state_.size())}, scaler_state_.data()});
}

void DeviceEngine::restore(const Checkpoint& checkpoint) {
  parameters_.restore(checkpoint);
  streams_ = checkpoint.state.streams;
  steps_made_ = checkpoint.state.position.step;
  if (streams_ > 0) {
    at::Tensor states = at::empty({streams_, shape_.state_size()}, at::kFloat);
    checkpoint.restore(std::vector<StateTensor>{
        {"carried_state", DType::f32, {streams_, shape_.state_size()}, states.mutable_data_ptr<float>()}});
    layers_.set_states(states);
  }
  // A run that had another precision before has no scale yet.
  const TensorRef* saved = checkpoint.file.find(kLossScale);
  if (precision_ != Precision::fp16 || saved == nullptr) return;
  std::vector<double> state(static_cast<size_t>(saved->count()));
  checkpoint.restore(std::vector<StateTensor>{{kLossScale, DType::f64, saved->shape, state.data()}});
  if (!scaler_.restore(state)) {
    throw DataError(checkpoint.file.path().string() + ": " + kLossScale + " holds no state of a loss scale");
  }
}

}  // namespace

kernels::device::Precision parse_precision(const std::string& name) {
  if (name == "fp32") return Precision::fp32;
  if (name == "tf32") return Precision::tf32;
  if (name == "bf16") return Precision::bf16;
  if (name == "fp16") return Precision::fp16;
  throw UsageError("train.precision: \"" + name + "\" is not a precision");
}

std::unique_ptr<TrainingEngine> make_device_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                   ThreadPool& pool, EnginePlace place) {
  return std::make_unique<DeviceEngine>(config, std::move(shape), std::move(layout), pool, std::move(place));
}

}  // namespace hsm
