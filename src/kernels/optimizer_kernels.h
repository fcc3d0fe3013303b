#pragma once
#include <cstdint>

#include "kernels/instruction_set.h"
#include "kernels/optimizer.h"
#include "kernels/update_rule.h"

namespace hsm::kernels {

/// Values that one call changes; `gradient` null stands for zeros.
struct UpdateRange {
  int64_t count = 0;
  const float* gradient = nullptr;
  float* value = nullptr;
  float* first = nullptr;
  float* second = nullptr;
};

struct OptimizerKernels {
  void (*update)(const UpdateRule&, const UpdateRange&);
  /// Σ x² in double: the squares are exact, and lane l of 32 sums those of places ≡ l, so every instruction
  /// set gives the same bits.
  double (*sum_of_squares)(const float* x, int64_t count);
};

const OptimizerKernels& optimizer_kernels_portable();
const OptimizerKernels& optimizer_kernels_avx2();
const OptimizerKernels& optimizer_kernels_avx512();

const OptimizerKernels& optimizer_kernels(InstructionSet set);

/// The rule of step `step` (from 1) at this learning rate.
UpdateRule make_rule(const OptimizerOptions& options, int64_t step, double learning_rate, double scale);

}  // namespace hsm::kernels
