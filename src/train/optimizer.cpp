#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>

#include "base/error.h"

namespace hsm {
namespace {

constexpr const char* kRates = "optimizer.learning_rates";
constexpr const char* kUpdates = "optimizer.updates";
constexpr const char* kSettings = "optimizer.settings";

std::string stamps_of(const Parameter& parameter) {
  return "optimizer.stamps." + parameter.name;
}

kernels::OptimizerKind kind_of(const std::string& name) {
  if (name == "sgd" || name == "asgd") return kernels::OptimizerKind::sgd;
  if (name == "momentum") return kernels::OptimizerKind::momentum;
  if (name == "adagrad") return kernels::OptimizerKind::adagrad;
  if (name == "adam") return kernels::OptimizerKind::adam;
  if (name == "adamw") return kernels::OptimizerKind::adamw;
  throw UsageError("train.optimizer.name: \"" + name + "\" is not an optimizer");
}

}  // namespace

kernels::OptimizerOptions options_of(const OptimizerConfig& config) {
  return {kind_of(config.name),       config.momentum,    config.beta1, config.beta2, config.epsilon,
          config.initial_accumulator, config.weight_decay};
}

Optimizer::Optimizer(const OptimizerConfig& config, double clip_norm, std::span<const Parameter> parameters,
                     ThreadPool& pool)
    : options_(options_of(config)), clip_norm_(clip_norm), parameters_(parameters), pool_(pool) {
  const kernels::InitialMoments initial = kernels::initial_moments(options_);
  for (const Parameter& parameter : parameters_) {
    Kept kept;
    if (kernels::uses_first_moment(options_)) kept.first.assign(parameter.value.size(), initial.first);
    if (kernels::uses_second_moment(options_)) kept.second.assign(parameter.value.size(), initial.second);
    if (kernels::needs_catch_up(options_) && parameter.rows != nullptr) {
      kept.stamps.assign(static_cast<size_t>(parameter.shape.front()), 0);
    }
    kept_.push_back(std::move(kept));
  }
}

kernels::OptimizerSlot Optimizer::slot(size_t parameter) {
  const Parameter& tensor = parameters_[parameter];
  Kept& kept = kept_[parameter];
  const int64_t width = static_cast<int64_t>(tensor.value.size()) / tensor.shape.front();
  return {tensor.value, kept.first, kept.second, kept.stamps, width};
}

bool Optimizer::takes_factors() const {
  return options_.kind == kernels::OptimizerKind::sgd && options_.weight_decay == 0;
}

bool Optimizer::needs_touched_rows() const {
  return kernels::needs_catch_up(options_);
}

void Optimizer::catch_up(const TouchedRows& rows) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].stamps.empty()) continue;
    const bool embedding = parameters_[i].name == "embedding.weight";
    kernels::catch_up(options_, history_, slot(i), embedding ? rows.embedding : rows.head, pool_);
  }
}

double Optimizer::gradient_norm() const {
  double sum = 0;
  const kernels::RowGradients<float>* counted = nullptr;
  for (const Parameter& parameter : parameters_) {
    if (parameter.rows == nullptr) {
      sum += kernels::sum_of_squares(parameter.gradient, pool_);
    } else if (parameter.rows != counted) {
      // Weights and biases of the head share their rows, and stand one after the other.
      counted = parameter.rows;
      sum += kernels::sum_of_squares(counted->values, pool_);
    }
    if (parameter.factors != nullptr) sum += kernels::sum_of_squares(*parameter.factors, pool_);
  }
  return std::sqrt(sum);
}

double Optimizer::update(double learning_rate) {
  const double norm = gradient_norm();
  if (!std::isfinite(norm)) return norm;
  const float scale = clip_norm_ > 0 && norm > clip_norm_ ? static_cast<float>(clip_norm_ / norm) : 1.0F;
  history_.advance(learning_rate);
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.rows == nullptr) {
      kernels::update(options_, history_, slot(i), parameter.gradient, scale, pool_);
    } else {
      kernels::update_rows(options_, history_, slot(i), *parameter.rows, parameter.row_offset, scale, pool_);
    }
    if (parameter.factors != nullptr) {
      const auto factor = static_cast<float>(-learning_rate * static_cast<double>(scale));
      const std::span<float> bias = parameters_[i + 1].value;
      kernels::add_gradients(*parameter.factors, factor, parameter.value.data(), bias.data(), pool_);
    }
  }
  if (!kernels::needs_catch_up(options_)) history_.forget();
  return norm;
}

void Optimizer::catch_up_all() {
  if (!kernels::needs_catch_up(options_)) return;
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (!kept_[i].stamps.empty()) kernels::catch_up_all(options_, history_, slot(i), pool_);
  }
  history_.forget();
}

void Optimizer::stand_at(int64_t updates) {
  for (Kept& kept : kept_) std::fill(kept.stamps.begin(), kept.stamps.end(), updates);
  history_ = kernels::StepHistory(updates, {});
}

void Optimizer::append_state(std::vector<StateTensor>& tensors) {
  append_moments(tensors);
  for (size_t i = 0; i < kept_.size(); ++i) {
    Kept& kept = kept_[i];
    if (kept.stamps.empty()) continue;
    tensors.push_back(
        {stamps_of(parameters_[i]), DType::i64, {parameters_[i].shape.front()}, kept.stamps.data()});
  }
  rates_.assign(history_.rates().begin(), history_.rates().end());
  tensors.push_back({kRates, DType::f64, {static_cast<int64_t>(rates_.size())}, rates_.data()});
  updates_ = history_.step();
  tensors.push_back({kUpdates, DType::i64, {1}, &updates_});
  settings_ = {options_.momentum, options_.epsilon, options_.weight_decay};
  tensors.push_back({kSettings, DType::f64, {static_cast<int64_t>(settings_.size())}, settings_.data()});
}

void Optimizer::append_moments(std::vector<StateTensor>& tensors) {
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    Kept& kept = kept_[i];
    if (!kept.first.empty()) {
      tensors.push_back(
          {"optimizer.first." + parameter.name, DType::f32, parameter.shape, kept.first.data()});
    }
    if (!kept.second.empty()) {
      tensors.push_back(
          {"optimizer.second." + parameter.name, DType::f32, parameter.shape, kept.second.data()});
    }
  }
}

void Optimizer::restore(const Checkpoint& checkpoint) {
  std::vector<StateTensor> tensors;
  append_moments(tensors);
  checkpoint.restore(tensors);
  const TensorRef* saved = checkpoint.file.find(kRates);
  rates_.assign(saved == nullptr ? 0 : static_cast<size_t>(saved->count()), 0.0);
  checkpoint.restore(
      std::vector<StateTensor>{{kRates, DType::f64, {static_cast<int64_t>(rates_.size())}, rates_.data()}});
  updates_ = checkpoint.state.position.step;  // but for skipped ones; files of before the tensor have none
  if (checkpoint.file.find(kUpdates) != nullptr) {
    checkpoint.restore(std::vector<StateTensor>{{kUpdates, DType::i64, {1}, &updates_}});
    if (updates_ < 0 || updates_ > checkpoint.state.position.step) {
      throw DataError(checkpoint.file.path().string() + ": " + kUpdates + " is " + std::to_string(updates_) +
                      ", expected 0 to " + std::to_string(checkpoint.state.position.step));
    }
  }
  history_ = kernels::StepHistory(updates_, rates_);
  restore_rows(checkpoint);
}

void Optimizer::restore_rows(const Checkpoint& checkpoint) {
  kernels::OptimizerOptions before = options_;  // files of before the tensor don't tell
  if (checkpoint.file.find(kSettings) != nullptr) {
    checkpoint.restore(std::vector<StateTensor>{
        {kSettings, DType::f64, {static_cast<int64_t>(settings_.size())}, settings_.data()}});
    before.momentum = settings_[0];
    before.epsilon = settings_[1];
    before.weight_decay = settings_[2];
  }
  const bool changed = before.momentum != options_.momentum || before.epsilon != options_.epsilon ||
                       before.weight_decay != options_.weight_decay;
  for (size_t i = 0; i < kept_.size(); ++i) {
    const Parameter& parameter = parameters_[i];
    if (parameter.rows == nullptr) continue;
    // Without stamps, rows didn't move unless a batch touched them, and none is behind.
    std::vector<int64_t> stamps(static_cast<size_t>(parameter.shape.front()), updates_);
    if (checkpoint.file.find(stamps_of(parameter)) != nullptr) {
      checkpoint.restore(std::vector<StateTensor>{
          {stamps_of(parameter), DType::i64, {parameter.shape.front()}, stamps.data()}});
    }
    // What rows owe, they owe by the settings of then.
    if (changed) {
      kernels::OptimizerSlot slot = this->slot(i);
      slot.stamps = stamps;
      kernels::catch_up_all(before, history_, slot, pool_);
    }
    if (!kept_[i].stamps.empty()) kept_[i].stamps = std::move(stamps);
  }
  if (changed) history_.forget();
}

}  // namespace hsm
