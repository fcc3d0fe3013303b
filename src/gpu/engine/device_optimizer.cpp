#include "gpu/engine/device_optimizer.h"

#include <ATen/ATen.h>

#include "kernels/optimizer_kernels.h"

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr int64_t kGradients = 4;  // dense ones, the embedding's, the words' weights and biases

bool corrects_bias(const kernels::OptimizerOptions& options) {
  return options.kind == kernels::OptimizerKind::adam || options.kind == kernels::OptimizerKind::adamw;
}

const at::Tensor& gradient_of(const DeviceParameter& parameter, const WindowGradients& gradients) {
  if (!parameter.sparse) return parameter.gradient;
  if (parameter.name == "embedding.weight") return gradients.embedding;
  return parameter.name == "head.word.bias" ? gradients.word_bias : gradients.word;
}

float* pointer(const at::Tensor& moment) {
  return moment.defined() ? moment.mutable_data_ptr<float>() : nullptr;
}

}  // namespace

DeviceOptimizer::DeviceOptimizer(const TrainConfig& config, dev::DeviceKernels& kernels,
                                 DeviceParameters& parameters)
    : options_(options_of(config.optimizer)),
      clip_norm_(config.clip_norm),
      all_rows_(kernels::needs_catch_up(options_)),
      kernels_(kernels),
      parameters_(parameters) {
  const at::TensorOptions options = parameters.gradients().options();
  outcome_ = at::zeros({static_cast<int64_t>(sizeof(dev::StepOutcome))}, options.dtype(at::kByte));
  norm_scratch_ = at::empty({dev::DeviceKernels::kNormScratch}, options.dtype(at::kDouble));
  squares_ = at::empty({kGradients}, options.dtype(at::kDouble));
}

void DeviceOptimizer::step(const WindowGradients& gradients, const WindowRows& rows,
                           const DeviceNumbers& numbers, double learning_rate, double loss_scale) {
  clip(gradients, rows.head.count, learning_rate, loss_scale);
  update(gradients, rows, numbers, learning_rate);
}

const dev::StepOutcome* DeviceOptimizer::outcome() const {
  return static_cast<const dev::StepOutcome*>(outcome_.const_data_ptr());
}

void DeviceOptimizer::stand_at(int64_t updates) {
  dev::StepOutcome outcome{};
  outcome.updates = updates;
  outcome_.copy_(at::from_blob(&outcome, outcome_.sizes(), at::kByte));
}

void DeviceOptimizer::clip(const WindowGradients& gradients, int64_t head_rows, double learning_rate,
                           double loss_scale) {
  int64_t count = 0;
  const auto add = [&](const at::Tensor& gradient, int64_t values) {
    kernels_.sum_of_squares({gradient.const_data_ptr<float>(), values},
                            squares_.mutable_data_ptr<double>() + count++,
                            norm_scratch_.mutable_data_ptr<double>());
  };
  add(parameters_.gradients(), parameters_.gradients().numel());
  add(gradients.word, head_rows * gradients.word.size(1));
  add(gradients.word_bias, head_rows);
  if (gradients.embedding.defined()) add(gradients.embedding, gradients.embedding.numel());
  const bool corrects = corrects_bias(options_);
  kernels_.clip_norm({squares_.const_data_ptr<double>(), count, gradients.losses.const_data_ptr<float>(),
                      gradients.losses.numel(), clip_norm_, loss_scale, learning_rate,
                      corrects ? options_.beta1 : 0, corrects ? options_.beta2 : 0,
                      static_cast<dev::StepOutcome*>(outcome_.mutable_data_ptr())});
}

void DeviceOptimizer::update(const WindowGradients& gradients, const WindowRows& rows,
                             const DeviceNumbers& numbers, double learning_rate) {
  for (DeviceParameter& each : parameters_.all()) {
    dev::UpdateValues<void> values{};
    values.rule = kernels::make_rule(options_, 1, learning_rate, 1);
    values.outcome = outcome();
    values.gradient = gradient_of(each, gradients).const_data_ptr<float>();
    values.width = each.width();
    values.value = each.value.mutable_data_ptr<float>();
    values.first = pointer(each.first);
    values.second = pointer(each.second);
    values.copy = each.copy();
    const bool embedding = each.name == "embedding.weight";
    int64_t count = each.value.numel();
    if (each.sparse && all_rows_) {
      values.places = numbers.pointer<int32_t>(embedding ? rows.embedding_places : rows.head_places);
    } else if (each.sparse) {
      const NumberRange touched = embedding ? rows.embedding : rows.head;
      values.rows = numbers.pointer<int32_t>(touched);
      count = touched.count * values.width;
    }
    kernels_.update(values, count);
  }
}

}  // namespace hsm
