#pragma once
#include "kernels/device/element.h"

namespace hsm::kernels::device {

/// A part of log Σ exp z: the largest z, and Σ exp(z − largest). Starts at (−∞, 0).
template <class S>
struct LogSum {
  S most;
  S sum;
};

template <class S>
HSM_HOST_DEVICE LogSum<S> no_terms() {
  return {minus_infinity<S>(), S{0}};
}

/// The parts' union. Parts without terms (or whose z are all −∞) add nothing; NaN stays.
template <class S>
HSM_HOST_DEVICE LogSum<S> join(const LogSum<S>& a, const LogSum<S>& b) {
  const S most = larger(a.most, b.most);
  if (most == minus_infinity<S>()) return {most, a.sum + b.sum};
  return {most, a.sum * exponential(a.most - most) + b.sum * exponential(b.most - most)};
}

/// Its logarithm.
template <class S>
HSM_HOST_DEVICE S value_of(const LogSum<S>& part) {
  return part.most + logarithm(part.sum);
}

}  // namespace hsm::kernels::device
