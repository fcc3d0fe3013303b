#include "train/optimizer.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "base/error.h"

namespace hsm {
namespace {

constexpr const char* kRates = "optimizer.learning_rates";
constexpr const char* kUpdates = "optimizer.updates";

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
    if (!kept_[i].stamps.empty()) tensors.push_back(stamps(i));
  }
  rates_.assign(history_.rates().begin(), history_.rates().end());
  tensors.push_back({kRates, DType::f64, {static_cast<int64_t>(rates_.size())}, rates_.data()});
  updates_ = history_.step();
  tensors.push_back({kUpdates, DType::i64, {1}, &updates_});
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

StateTensor Optimizer::stamps(size_t parameter) {
  const Parameter& tensor = parameters_[parameter];
  return {
      "optimizer.stamps." + tensor.name, DType::i64, {tensor.shape.front()}, kept_[parameter].stamps.data()};
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
  for (size_t i = 0; i < kept_.size(); ++i) {
    if (kept_[i].stamps.empty()) continue;
    const StateTensor tensor = stamps(i);
    if (checkpoint.file.find(tensor.name) != nullptr) {
      checkpoint.restore(std::vector<StateTensor>{tensor});
    } else {  // of a run without weight decay so far, whose rows are all up to date
      std::fill(kept_[i].stamps.begin(), kept_[i].stamps.end(), updates_);
    }
  }
}

}  // namespace hsm
