#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/row_gradients.h"
#include "kernels/update_rule.h"

namespace hsm::kernels {

// Updates of parameters by torch's formulas (torch.optim.SGD, Adagrad, Adam, AdamW), for whole tensors and
// for the rows that a batch touched. When to step, at what rate, with what clipping is train's business.
//
// What happens to rows that a batch did not touch, compared with a dense update:
//   sgd, adagrad without weight decay  nothing, which is exactly the dense update
//   weight decay (sgd, momentum, adagrad, adamw), momentum
//                                      what zero gradients would have done is done later, by catch_up: a
//                                      row's stamp says how far it is. The same as dense within rounding,
//                                      provided that rows are caught up before a forward pass reads them
//   adam, adamw                        lazily, as torch's SparseAdam: moments of other rows stand still, the
//                                      bias correction counts all steps (epsilon where Adam has it); Adam's
//                                      own weight decay reaches a row only when a batch touches it

struct OptimizerOptions {
  OptimizerKind kind = OptimizerKind::sgd;
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;  ///< adagrad
  double weight_decay = 0;         ///< added to the gradient; for adamw, decoupled
};

/// Which of OptimizerSlot's spans an optimiser uses.
bool uses_first_moment(const OptimizerOptions& options);
bool uses_second_moment(const OptimizerOptions& options);
/// True when untouched rows move, so that stamps, catch_up and the learning rates of past steps are needed.
bool needs_catch_up(const OptimizerOptions& options);

/// A parameter and what the optimiser keeps about it. The memory is the caller's; before the first step
/// moments hold initial_moments() and stamps 0 (or the step at which training starts).
struct OptimizerSlot {
  std::span<float> value;
  std::span<float> first;   ///< as long as value when uses_first_moment: momentum's buffer, Adam's mean
  std::span<float> second;  ///< as long as value when uses_second_moment: sums or means of squares
  std::span<int64_t>
      stamps;         ///< one a row when needs_catch_up and updated by rows: last step it has gone through
  int64_t width = 0;  ///< values a row, for updates by rows
};

/// What `first` (0) and `second` start with.
struct InitialMoments {
  float first = 0;
  float second = 0;
};
InitialMoments initial_moments(const OptimizerOptions& options);

/// The number of the current step and the learning rates of the steps that some row may have missed.
class StepHistory {
 public:
  StepHistory() = default;
  /// Restores a saved history: rates of the last rates.size() of `step` steps.
  StepHistory(int64_t step, std::vector<double> rates);

  /// Begins the next step, at this learning rate.
  void advance(double learning_rate);
  /// First step whose rate is remembered.
  [[nodiscard]] int64_t oldest() const noexcept { return first_; }
  /// Steps begun so far; 1 during the first.
  [[nodiscard]] int64_t step() const noexcept { return step_; }
  [[nodiscard]] double learning_rate(int64_t step) const {
    return rates_[static_cast<size_t>(step - first_)];
  }
  [[nodiscard]] double learning_rate() const { return rates_.back(); }
  /// Rates still remembered, oldest first; the last belongs to step().
  [[nodiscard]] std::span<const double> rates() const noexcept { return rates_; }
  /// Drops all rates but the current one: when every row of every parameter is caught up, or when none ever
  /// needs to be.
  void forget();

 private:
  int64_t step_ = 0;
  int64_t first_ = 1;  ///< step of rates_[0]
  std::vector<double> rates_;
};

/// The update of step history.step() from a dense gradient, each value multiplied by `scale` first (what
/// clipping asks for).
void update(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
            std::span<const float> gradient, float scale, ThreadPool& pool);

/// The same for the rows of `gradient` alone: slot.width values from `offset` on in each of its rows. Rows
/// that lag behind are caught up first.
void update_rows(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
                 const RowGradients<float>& gradient, int64_t offset, float scale, ThreadPool& pool);

/// Brings distinct `rows` to the end of step history.step() as if each step they missed had had a zero
/// gradient. To be exactly the dense update, call it before a forward pass with the rows that it will read.
/// Nothing to do unless needs_catch_up. Cost: a few operations a row, whatever it missed; Adagrad with weight
/// decay, whose decay is not linear, costs what its dense updates would have.
void catch_up(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
              std::span<const int64_t> rows, ThreadPool& pool);

/// All rows, as before a validation or the final save. It rounds the values once more, so for the same bits
/// in two runs call it at the same steps; a checkpoint had better keep stamps and rates instead.
void catch_up_all(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
                  ThreadPool& pool);

/// Σ x², in double, added in an order that depends on the length alone. For rows: of RowGradients::values.
double sum_of_squares(std::span<const float> x, ThreadPool& pool);

}  // namespace hsm::kernels
