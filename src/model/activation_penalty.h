#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "text/batches.h"

namespace hsm {

/// Penalties on the last recurrent layer's output h, beside the loss (Merity, McCann and Socher, "Revisiting
/// activation regularization for language RNNs", 2017):
///   activation: α · mean of h², after dropout
///   temporal:   β · mean of (h_t − h_(t−1))², before dropout
/// Means are over the units of all positions of a window that have a target, temporal over those where the
/// position before has one, too. Only gradients are computed: penalties are no part of the perplexity.
class ActivationPenalty {
 public:
  ActivationPenalty(double activation, double temporal) : activation_(activation), temporal_(temporal) {}

  [[nodiscard]] bool activation() const noexcept { return activation_ > 0; }
  [[nodiscard]] bool temporal() const noexcept { return temporal_ > 0; }

  /// Counts the positions of a window; before the gradients of its parts. `scale` is that of the sum of
  /// losses.
  void begin_window(const Batch& window, float scale);

  /// What h, and differences of h, of `width` units are multiplied by in the gradients.
  [[nodiscard]] float activation_factor(int64_t width) const;
  [[nodiscard]] float temporal_factor(int64_t width) const;

  /// gradient += that of the activation penalty by h = output [steps, streams, width], after dropout. `part`
  /// holds streams of the window.
  void add_activation(const Batch& part, int64_t width, std::span<const float> output,
                      std::span<float> gradient, ThreadPool& pool) const;
  /// gradient = that of the temporal penalty by h = output, before dropout.
  void find_temporal(const Batch& part, int64_t width, std::span<const float> output,
                     std::span<float> gradient, ThreadPool& pool) const;

 private:
  double activation_;
  double temporal_;
  double weight_ = 0;  // of a mean over the window, in the unit of the summed losses' gradient
  int64_t positions_ = 0;
  int64_t pairs_ = 0;
};

}  // namespace hsm
