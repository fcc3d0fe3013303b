#include "gpu/engine/device_engine.h"

#include <ATen/ATen.h>
#include <ATen/Parallel.h>
#include <c10/core/Event.h>
#include <c10/core/impl/VirtualGuardImpl.h>

#include <array>
#include <cmath>
#include <deque>
#include <optional>
#include <utility>

#include "base/error.h"
#include "gpu/engine/device_average.h"
#include "gpu/engine/device_model.h"
#include "gpu/engine/device_numbers.h"
#include "gpu/engine/device_optimizer.h"
#include "gpu/engine/device_parameters.h"
#include "gpu/engine/device_text_scorer.h"
#include "gpu/engine/window_rows.h"
#include "train/loss_scaler.h"

namespace hsm {
namespace {

namespace dev = kernels::device;
using dev::Precision;
using dev::StepOutcome;

constexpr int64_t kLookahead = 1;
constexpr const char* kLossScale = "loss_scale";

// Replaces the head's parameters by their products with the scales, as ScaledWeights has them.
void scale_head(std::vector<at::Tensor>& weights, const ModelShape& shape, const HeadLayout& layout,
                const LogitScales& scales) {
  if (scales == LogitScales{}) return;
  const std::vector<TensorSpec> specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::optional<int64_t> at_root = root_rows(specs[i], layout);
    if (!at_root) continue;
    weights[i] = weights[i].clone();
    weights[i].narrow(0, 0, *at_root).mul_(scales.root);
    weights[i].narrow(0, *at_root, weights[i].size(0) - *at_root).mul_(scales.cluster);
  }
}

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
        float_kernels_(std::move(place.float_kernels)),
        device_(device_of(place.cuda_device)),
        elements_(at::TensorOptions().device(device_).dtype(element_of(place.precision))),
        lister_(layout_, {config.train.micro_batches, config.train.head_chunk}, shape_.tied,
                kernels::needs_catch_up(options_of(config.train.optimizer))),
        parameters_(config, shape_, pool, elements_),
        model_(config, shape_, layout_, parameters_, {*kernels_, *float_kernels_}, elements_),
        optimizer_(config.train, *kernels_, parameters_),
        average_(parameters_, pool, *kernels_),
        scaler_(kLookahead) {
    at::set_num_threads(pool.threads());
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
  void start_averaging() override { average_.start(updates_); }
  [[nodiscard]] bool averaging() const noexcept override { return average_.running(); }
  WeightView weights() override {
    return average_.empty(updates_) ? parameters_.weights() : average_.weights(updates_);
  }
  std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence, const LogitScales& scales) override;
  void append_state(std::vector<StateTensor>& tensors) override;
  void restore(const Checkpoint& checkpoint) override;

 private:
  [[nodiscard]] at::Tensor host_memory(int64_t count, at::ScalarType type) const {
    return at::empty({count}, at::TensorOptions().dtype(type).pinned_memory(device_.is_cuda()));
  }
  [[nodiscard]] DeviceNumbers upload(const std::vector<int32_t>& numbers, Slot& slot) const;
  void send_outcome(Slot& slot);

  Config config_;
  ModelShape shape_;
  HeadLayout layout_;
  Precision precision_;
  std::unique_ptr<dev::DeviceKernels> kernels_;
  std::shared_ptr<dev::DeviceKernels> float_kernels_;
  at::Device device_;
  at::TensorOptions elements_;
  WindowLister lister_;
  DeviceParameters parameters_;
  DeviceModel model_;
  DeviceOptimizer optimizer_;
  DeviceAverage average_;
  LossScaler scaler_;
  int64_t streams_ = 0;      // of the states; 0 before the first step
  int64_t steps_begun_ = 0;  // by this object
  int64_t updates_ = 0;      // as of the latest step that is finished

  std::array<Slot, kLookahead + 1> slots_;
  std::deque<Pending> pending_;
  std::vector<double> scaler_state_;  // while a checkpoint is written
  at::Tensor states_;                 // likewise
};

void DeviceEngine::begin_step(const Batch& batch, const StepOptions& options) {
  const double loss_scale = precision_ == Precision::fp16 ? scaler_.begin_step() : 1;
  const auto scale = static_cast<float>(options.scale * loss_scale);
  WindowRows rows = lister_.list(batch);
  append_factors(rows, scale, config_.model.dropout.embedding, config_.train.seed, options.position.step);

  const size_t slot = static_cast<size_t>(steps_begun_++) % slots_.size();
  pending_.push_back({options.position, batch.target_count, slot});
  streams_ = batch.streams;
  const DeviceNumbers numbers = upload(rows.numbers, slots_[slot]);
  const WindowGradients gradients = model_.step(batch, rows, numbers, options.position.step, scale);
  optimizer_.step(gradients, rows, numbers, options.learning_rate, loss_scale);
  if (average_.running()) average_.add(optimizer_.outcome());
  send_outcome(slots_[slot]);
}

// One copy, from memory that stays as it is until the step is finished.
DeviceNumbers DeviceEngine::upload(const std::vector<int32_t>& numbers, Slot& slot) const {
  const auto count = static_cast<int64_t>(numbers.size());
  if (!slot.numbers.defined() || slot.numbers.numel() < count) {
    slot.numbers = host_memory(count + count / 4, at::kInt);
  }
  at::Tensor staged = slot.numbers.narrow(0, 0, count);
  std::copy(numbers.begin(), numbers.end(), staged.mutable_data_ptr<int32_t>());
  at::Tensor sent = at::empty({count}, elements_.dtype(at::kInt));
  sent.copy_(staged, true);
  return {sent};
}

void DeviceEngine::send_outcome(Slot& slot) {
  slot.outcome.copy_(optimizer_.outcome_bytes(), true);
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
  updates_ = outcome.updates;
  StepResult result{step.position, step.targets, outcome.loss, outcome.norm, false};
  if (precision_ == Precision::fp16) {
    const bool overflow = outcome.ok == 0;
    result.skipped = scaler_.finish_step(overflow) && overflow && std::isfinite(outcome.loss);
  }
  return result;
}

std::unique_ptr<TextScorer> DeviceEngine::make_scorer(int32_t end_of_sentence, const LogitScales& scales) {
  std::vector<at::Tensor> weights;
  if (average_.empty(updates_)) {
    for (const DeviceParameter& each : parameters_.all()) weights.push_back(each.value);
  } else {
    weights = average_.means();
  }
  scale_head(weights, shape_, layout_, scales);
  return std::make_unique<DeviceTextScorer>(shape_, layout_, std::move(weights), float_kernels_,
                                            end_of_sentence);
}

// ---- checkpoints

void DeviceEngine::append_state(std::vector<StateTensor>& tensors) {
  parameters_.append_state(updates_, tensors);
  average_.append_state(updates_, tensors);
  if (streams_ > 0) {
    states_ = model_.states();
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
  updates_ = parameters_.restored_updates();
  optimizer_.stand_at(updates_);
  average_.restore(checkpoint, updates_);
  streams_ = checkpoint.state.streams;
  if (streams_ > 0) {
    at::Tensor states = at::empty({streams_, shape_.state_size()}, at::kFloat);
    checkpoint.restore(std::vector<StateTensor>{
        {"carried_state", DType::f32, {streams_, shape_.state_size()}, states.mutable_data_ptr<float>()}});
    model_.set_states(states);
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
