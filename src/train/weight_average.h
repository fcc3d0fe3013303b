#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "model/inference_model.h"
#include "model/training_model.h"
#include "train/checkpoint.h"

namespace hsm {

/// The mean of the weights over steps, as torch.optim.ASGD keeps it with lambd 0 and t0 0: after step k = 1,
/// 2, … since it began, mean += (weights − mean) / max(1, k − 1). Training goes on from the weights
/// themselves.
class WeightAverage {
 public:
  /// `parameters` and what they refer to outlive this.
  WeightAverage(std::span<const Parameter> parameters, ThreadPool& pool);

  void start() { running_ = true; }
  [[nodiscard]] bool running() const noexcept { return running_; }
  /// Whether there is a mean: after the first step.
  [[nodiscard]] bool empty() const noexcept { return steps_ == 0; }

  /// Takes in the weights after a step; all rows must be up to date.
  void add();
  /// The mean, in the order of the parameters.
  [[nodiscard]] WeightView view() const;

  /// For checkpoints; valid until the next add().
  void append_state(std::vector<StateTensor>& tensors);
  void restore(const Checkpoint& checkpoint);

  // For an engine that averages elsewhere and keeps its checkpoints in this form.

  [[nodiscard]] int64_t steps() const noexcept { return steps_; }
  /// The mean of a parameter; empty when there is none.
  [[nodiscard]] std::span<float> mean(size_t parameter);
  /// Says that this many steps have been taken in.
  void stand_at(int64_t steps);

 private:
  void allocate();

  std::span<const Parameter> parameters_;
  ThreadPool& pool_;
  bool running_ = false;
  int64_t steps_ = 0;
  std::vector<std::vector<float>> means_;
};

}  // namespace hsm
