#pragma once
#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "config/config.h"
#include "kernels/optimizer.h"
#include "model/training_model.h"
#include "train/checkpoint.h"
#include "train/touched_rows.h"

namespace hsm {

/// The kernels' options for a configuration.
kernels::OptimizerOptions options_of(const OptimizerConfig& config);

/// Steps of the configured optimiser over all parameters of a model, dense ones whole, the others by the
/// rows that a batch touched. It owns what the update keeps about each: moments and row stamps.
class Optimizer {
 public:
  /// `clip_norm` 0: no clipping. `parameters` and what they refer to outlive the optimiser, and each is
  /// dense or sparse for good.
  Optimizer(const OptimizerConfig& config, double clip_norm, std::span<const Parameter> parameters,
            ThreadPool& pool);

  /// Whether it takes gradients that are left as factors (TrainingModel::leave_factors).
  [[nodiscard]] bool takes_factors() const;
  /// True when catch_up() must be called before each forward pass.
  [[nodiscard]] bool needs_touched_rows() const;
  /// Brings the rows that the forward pass will read up to date.
  void catch_up(const TouchedRows& rows);

  /// One update from the gradients, scaled down so that their norm over all parameters is at most
  /// clip_norm. Returns the norm before that. When it isn't finite, nothing is changed.
  double update(double learning_rate);

  /// Brings all rows up to date, as before a validation. Rounds, so it belongs at steps that are the same in
  /// every run of a configuration: never at a checkpoint.
  void catch_up_all();

  /// Adds everything a checkpoint must hold; valid until the next update.
  void append_state(std::vector<StateTensor>& tensors);
  /// After the parameters have been restored: where settings have changed, rows that lag behind are brought
  /// up to date by those of before.
  void restore(const Checkpoint& checkpoint);

  // For an engine that updates elsewhere and keeps its checkpoints in this form.

  /// What is kept about a parameter; empty where the optimiser keeps nothing of the kind.
  [[nodiscard]] std::span<float> first_moment(size_t parameter) { return kept_[parameter].first; }
  [[nodiscard]] std::span<float> second_moment(size_t parameter) { return kept_[parameter].second; }
  /// Updates made.
  [[nodiscard]] int64_t updates() const noexcept { return history_.step(); }
  /// Says that all rows are as they are after this many updates.
  void stand_at(int64_t updates);

 private:
  /// What is kept for one parameter, in the order of the parameters.
  struct Kept {
    std::vector<float> first;
    std::vector<float> second;
    std::vector<int64_t> stamps;
  };

  [[nodiscard]] kernels::OptimizerSlot slot(size_t parameter);
  [[nodiscard]] double gradient_norm() const;
  void append_moments(std::vector<StateTensor>& tensors);
  void restore_rows(const Checkpoint& checkpoint);

  kernels::OptimizerOptions options_;
  double clip_norm_;
  std::span<const Parameter> parameters_;
  ThreadPool& pool_;
  kernels::StepHistory history_;
  std::vector<double> rates_;         // history_'s, while a checkpoint is written
  int64_t updates_ = 0;               // likewise
  std::array<double, 3> settings_{};  // likewise, of options_: momentum, epsilon, weight decay
  std::vector<Kept> kept_;
};

}  // namespace hsm
