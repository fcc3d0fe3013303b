#pragma once
#include <cstdint>

#include "kernels/instruction_set.h"
#include "kernels/optimizer.h"

namespace hsm::kernels {

/// One step of an optimiser on some values, everything that is the same for all of them computed. With
/// d = scale · gradient + decay · value:
///   sgd       value −= rate · d
///   momentum  first = momentum · first + d;  value −= rate · first
///   adagrad   second += d²;  value −= rate · d / (√second + epsilon)
///   adam      first += (1 − beta1) · (d − first);  second = beta2 · second + (1 − beta2) · d²;
///             value −= rate · first / (root_factor · √second + epsilon)
///   adamw     the same with value ← keep · value before and d = scale · gradient
struct UpdateRule {
  OptimizerKind kind = OptimizerKind::sgd;
  float rate = 0;
  float scale = 1;
  float decay = 0;
  float keep = 1;
  float momentum = 0;
  float rest1 = 0;  ///< 1 − beta1
  float beta2 = 0;
  float rest2 = 0;  ///< 1 − beta2
  float root_factor = 1;
  float epsilon = 0;
};

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

}  // namespace hsm::kernels
