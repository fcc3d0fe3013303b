#pragma once
#include <cstdint>

// Read by the CUDA compiler, too, and so C++17.
namespace hsm::kernels {

enum class OptimizerKind { sgd, momentum, adagrad, adam, adamw };

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

}  // namespace hsm::kernels
