#include "model/activation_penalty.h"

#include <algorithm>

namespace hsm {
namespace {

bool counts(const Batch& batch, int64_t step, int64_t stream) {
  return batch.targets[static_cast<size_t>(step * batch.streams + stream)] != kNoTarget;
}

// Whether the difference of this step's output and the last one's is penalised.
bool counts_pair(const Batch& batch, int64_t step, int64_t stream) {
  return step > 0 && step < batch.steps && counts(batch, step, stream) && counts(batch, step - 1, stream);
}

}  // namespace

void ActivationPenalty::begin_window(const Batch& window, float scale) {
  weight_ = static_cast<double>(scale) * static_cast<double>(window.target_count);
  positions_ = window.target_count;
  pairs_ = 0;
  if (!temporal()) return;
  for (int64_t step = 1; step < window.steps; ++step) {
    for (int64_t stream = 0; stream < window.streams; ++stream) {
      pairs_ += counts_pair(window, step, stream) ? 1 : 0;
    }
  }
}

float ActivationPenalty::activation_factor(int64_t width) const {
  return static_cast<float>(
      2 * activation_ * weight_ /
      (static_cast<double>(std::max<int64_t>(1, positions_)) * static_cast<double>(width)));
}

float ActivationPenalty::temporal_factor(int64_t width) const {
  return static_cast<float>(2 * temporal_ * weight_ /
                            (static_cast<double>(std::max<int64_t>(1, pairs_)) * static_cast<double>(width)));
}

void ActivationPenalty::add_activation(const Batch& part, int64_t width, std::span<const float> output,
                                       std::span<float> gradient, ThreadPool& pool) const {
  const float factor = activation_factor(width);
  pool.run(part.steps, [&](int64_t step, int /*worker*/) {
    for (int64_t stream = 0; stream < part.streams; ++stream) {
      if (!counts(part, step, stream)) continue;
      const auto first = static_cast<size_t>((step * part.streams + stream) * width);
      for (size_t i = first; i < first + static_cast<size_t>(width); ++i) gradient[i] += factor * output[i];
    }
  });
}

void ActivationPenalty::find_temporal(const Batch& part, int64_t width, std::span<const float> output,
                                      std::span<float> gradient, ThreadPool& pool) const {
  const float factor = temporal_factor(width);
  const auto row = static_cast<size_t>(part.streams * width);
  pool.run(part.steps, [&](int64_t step, int /*worker*/) {
    for (int64_t stream = 0; stream < part.streams; ++stream) {
      const bool before = counts_pair(part, step, stream);
      const bool after = counts_pair(part, step + 1, stream);
      const auto first = static_cast<size_t>((step * part.streams + stream) * width);
      for (size_t i = first; i < first + static_cast<size_t>(width); ++i) {
        float sum = 0;
        if (before) sum += output[i] - output[i - row];
        if (after) sum += output[i] - output[i + row];
        gradient[i] = factor * sum;
      }
    }
  });
}

}  // namespace hsm
