#pragma once
#include <cstdint>
#include <limits>

#include "config/config.h"

namespace hsm {

/// What the plateau schedule has seen; part of a checkpoint.
struct PlateauState {
  double best = std::numeric_limits<double>::infinity();  ///< lowest validation perplexity
  int64_t without_improvement = 0;  ///< validations since the best or the last reduction
  int64_t reductions = 0;           ///< how often the rate was multiplied by the factor
};

/// Learning rate of each step, r the configured rate and s the step from 0:
///   constant     r
///   epoch_decay  r · factor^max(0, e − after), epoch e from 1
///   plateau      r · factor^n, not below minimum; n rises when more than `patience` validations in a row
///                bring no new best
///   cosine       minimum + (r − minimum) · (1 + cos(π · t)) / 2, t the part done of the steps after warm-up
/// In the first warmup_steps steps that rate is multiplied by (s + 1) / warmup_steps.
class Schedule {
 public:
  /// `total_steps` of the whole run; only cosine needs it.
  Schedule(const ScheduleConfig& config, double learning_rate, int64_t total_steps);

  /// `epoch` and `step` from 0.
  [[nodiscard]] double rate(int64_t epoch, int64_t step) const;

  void record_validation(double perplexity);

  [[nodiscard]] const PlateauState& state() const noexcept { return plateau_; }
  void restore(const PlateauState& state) noexcept { plateau_ = state; }

 private:
  [[nodiscard]] double cosine(int64_t step) const;

  ScheduleConfig config_;
  double learning_rate_;
  int64_t total_steps_;
  PlateauState plateau_;
};

}  // namespace hsm
