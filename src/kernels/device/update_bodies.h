#pragma once
#include <cstdint>

#include "kernels/device/element.h"
#include "kernels/update_rule.h"

// Norm, clipping and update on the device, as bodies for an index (see row_bodies.h). Nothing is read back to
// the host: the update looks at the step's outcome, which the clipping writes.
namespace hsm::kernels::device {

/// out[i] = Σ x² over x[i], x[i + parts], x[i + 2·parts], …: neighbouring lanes read neighbouring values. An
/// index a part.
struct SumSquares {
  const float* x;
  int64_t count;
  int64_t parts;
  double* out;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t at = i; at < count; at += parts) sum += static_cast<double>(x[at]) * x[at];
    out[i] = sum;
  }
};

/// out[i] = Σ x over the same. An index a part.
struct SumParts {
  const double* x;
  int64_t count;
  int64_t parts;
  double* out;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    double sum = 0;
    for (int64_t at = i; at < count; at += parts) sum += x[at];
    out[i] = sum;
  }
};

/// What became of a step, on the device; the host reads it when the step is finished.
struct StepOutcome {
  double loss;        ///< Σ over the window
  double norm;        ///< of the gradients, before clipping, the loss's scale taken out
  int64_t updates;    ///< made so far, this step's among them when it is ok
  float coefficient;  ///< that the update multiplies gradients by
  float rate;         ///< UpdateRule's, which like root_factor corrects Adam's bias by the number of updates
  float root_factor;  ///< UpdateRule's
  int32_t ok;         ///< loss and norm are finite; else the update changes nothing
};

/// Fills the outcome from the sums of squares of each gradient, from the losses of each piece, and from the
/// outcome of the step before. One index.
struct ClipNorm {
  const double* squares;
  int64_t gradients;
  const float* losses;
  int64_t pieces;
  double clip_norm;  ///< 0: none
  double loss_scale;
  double learning_rate;
  double beta1;  ///< 0 where no bias is to be corrected
  double beta2;  ///< likewise
  StepOutcome* outcome;

  HSM_HOST_DEVICE void operator()(int64_t) const {
    double sum = 0;
    for (int64_t i = 0; i < gradients; ++i) sum += squares[i];
    double loss = 0;
    for (int64_t i = 0; i < pieces; ++i) loss += losses[i];
    const double norm = sqrt(sum) / loss_scale;
    const double clipped = clip_norm > 0 && norm > clip_norm ? clip_norm / norm : 1;
    const bool ok = finite(loss) && finite(norm);
    const int64_t updates = outcome->updates + 1;
    const auto t = static_cast<double>(updates);
    *outcome = {loss,
                norm,
                ok ? updates : updates - 1,
                ok ? static_cast<float>(clipped / loss_scale) : 0.0F,
                static_cast<float>(learning_rate / (1 - pow(beta1, t))),
                static_cast<float>(1 / sqrt(1 - pow(beta2, t))),
                ok ? 1 : 0};
  }

  HSM_HOST_DEVICE static bool finite(double x) { return x - x == 0; }
};

/// A parameter, what the optimiser keeps about it and its gradient, which may be sparse: `rows` lists the
/// rows that it has (an index a value of the gradient), or `places` says for each row of the parameter where
/// its gradient stands, −1 for a row without (an index a value of the parameter). Both null: dense.
template <class T>
struct UpdateValues {
  UpdateRule rule;  ///< but its scale, rate and root_factor, which the outcome has
  const StepOutcome* outcome;
  const float* gradient;
  const int32_t* rows;
  const int32_t* places;
  int64_t width;
  float* value;
  float* first;   ///< null when the rule has none
  float* second;  ///< likewise
  T* copy;        ///< of the values, as the forward pass reads them; null when it reads `value`

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    if (outcome->ok == 0) return;
    const int64_t row = i / width;
    const int64_t at = rows != nullptr ? rows[row] * width + i % width : i;
    const int64_t place = places == nullptr ? 0 : places[row];
    float updated = 0;
    if (place < 0 && rule.kind == OptimizerKind::adamw) {
      updated = value[at] * rule.keep;  // moments stand still
    } else {
      const int64_t from = places == nullptr ? i : place * width + i % width;
      const float d = place < 0 ? 0 : gradient[from] * outcome->coefficient;
      updated = apply(at, d, value[at]);
    }
    value[at] = updated;
    if (copy != nullptr) copy[at] = Element<T>::store(updated);
  }

 private:
  HSM_HOST_DEVICE float apply(int64_t at, float d, float v) const {
    const float rate = outcome->rate;
    if (rule.kind == OptimizerKind::adamw) {
      v *= rule.keep;
    } else {
      d = fmaf(rule.decay, v, d);
    }
    switch (rule.kind) {
      case OptimizerKind::sgd:
        return fmaf(-rate, d, v);
      case OptimizerKind::momentum:
        first[at] = fmaf(rule.momentum, first[at], d);
        return fmaf(-rate, first[at], v);
      case OptimizerKind::adagrad:
        second[at] = fmaf(d, d, second[at]);
        // 0 / 0 when nothing was ever accumulated and epsilon is 0.
        return d == 0 ? v : fmaf(-rate, d / (sqrtf(second[at]) + rule.epsilon), v);
      default:
        first[at] = fmaf(rule.rest1, d - first[at], first[at]);
        second[at] = fmaf(rule.rest2 * d, d, rule.beta2 * second[at]);
        return fmaf(-rate, first[at] / fmaf(sqrtf(second[at]), outcome->root_factor, rule.epsilon), v);
    }
  }
};

/// The mean of a parameter over updates, as train/weight_average.h keeps it: after update k = 1, 2, … of
/// those that it is over, mean += (value − mean) / max(1, k − 1). An index a value.
struct AverageValues {
  const StepOutcome* outcome;
  int64_t before;  ///< updates made before the first that the mean is over
  const float* value;
  float* mean;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    if (outcome->ok == 0) return;
    const int64_t steps = outcome->updates - before;
    if (steps <= 2) {
      mean[i] = value[i];
    } else {
      mean[i] = fmaf(1.0F / static_cast<float>(steps - 1), value[i] - mean[i], mean[i]);
    }
  }
};

}  // namespace hsm::kernels::device
