#pragma once
#include <cstddef>
#include <cstdint>
#include <deque>
#include <vector>

namespace hsm {

/// Dynamic scaling of the loss, so that gradients keep within the range of fp16. The scale is doubled after
/// kGrowthSteps steps in a row whose gradients were finite, and halved after one whose gradients were not;
/// that step is to be skipped.
///
/// Results may come late: what a step shows takes effect on the step `lookahead` + 1 after it, however early
/// it is known, so that scales don't depend on when a caller waits. A step that overflowed at a scale that
/// has been halved since says nothing new.
class LossScaler {
 public:
  static constexpr double kFirstScale = 65536;
  static constexpr double kLeastScale = 1;
  static constexpr double kLargestScale = 1 << 24;
  static constexpr int64_t kGrowthSteps = 2000;

  /// `lookahead`: steps that may be pending when another begins.
  explicit LossScaler(int64_t lookahead);

  /// The scale of the step that begins now. All steps but the last `lookahead` must have been finished.
  double begin_step();
  /// Tells of the oldest pending step. Returns false when it overflowed at the least scale already: training
  /// has diverged then.
  bool finish_step(bool overflow);

  /// All it knows when no step is pending, as a checkpoint holds it.
  [[nodiscard]] std::vector<double> state() const;
  /// False, and nothing is changed, when `state` is not such a state.
  bool restore(const std::vector<double>& state);

 private:
  struct Result {
    double scale = 0;
    bool overflow = false;
  };
  void apply(const Result& result);

  size_t lookahead_;
  double scale_ = kFirstScale;
  int64_t good_steps_ = 0;       ///< in a row at this scale
  std::deque<double> pending_;   ///< scales of steps begun, oldest first
  std::deque<Result> finished_;  ///< that have no effect yet, oldest first
};

}  // namespace hsm
