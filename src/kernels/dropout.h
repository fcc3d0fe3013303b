#pragma once
#include <cstdint>

#include "base/random.h"
#include "base/thread_pool.h"

namespace hsm::kernels {

/// Whose mask: with (stream, time, unit) the whole key of a random number, so that a mask depends neither on
/// threads nor on how a window is cut.
struct DropoutKey {
  uint64_t seed = 0;
  Purpose purpose = Purpose::dropout_hidden;
  int64_t step = 0;   ///< training step, below 2^56
  int64_t layer = 0;  ///< below 256
};

/// Shape of what a mask is for: [times, streams, units], at most 2^24 times and streams, 2^19 units.
struct DropoutShape {
  int64_t times = 0;
  int64_t streams = 0;
  int64_t units = 0;
  int64_t first_stream = 0;  ///< where these streams stand among those of the whole window
};

/// Inverted dropout in place: each value is multiplied by 0 with `probability` (to 2^-16), else by
/// 1 / (1 − probability). `locked` gives all times of a stream the mask of time 0. The same call on the
/// gradients is the backward pass.
void apply_dropout(const DropoutShape& shape, double probability, bool locked, const DropoutKey& key,
                   float* values, ThreadPool& pool);

}  // namespace hsm::kernels
