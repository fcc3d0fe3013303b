#pragma once
// exp, tanh and the logistic function of whole vectors; see simd.h for who may include this file.
#include "kernels/simd.h"

namespace hsm::kernels {
namespace {

using FloatVector = Vector<float>;
using IntVector = Integers<float>;

/// exp(x) = 2^power · (1 + fraction)
struct SplitExp {
  FloatVector fraction;  ///< exp(r) − 1 for |r| ≤ log(2)/2
  IntVector power;
};

/// |x| < 120; NaN stays NaN in `fraction`.
inline SplitExp split_exp(FloatVector x) {
  // Adding 1.5 · 2^23 leaves the nearest integer in the low bits of the sum.
  const FloatVector magic = broadcast(0x1.8p23F);
  const FloatVector shifted = multiply_add(x, broadcast(1.44269504F), magic);
  const FloatVector whole = shifted - magic;
  const IntVector power = reinterpret_cast<IntVector>(shifted) - reinterpret_cast<IntVector>(magic);
  // log(2) in two parts: the first has few bits, so that its product with `whole` is exact.
  FloatVector r = multiply_add(whole, broadcast(-0x1.62ep-1F), x);
  r = multiply_add(whole, broadcast(-0x1.0bfbe8p-15F), r);
  // (exp(r) − 1 − r) / r², interpolated at the Chebyshev points of |r| ≤ 0.3475: relative error of
  // exp(r) − 1 below 2.5e-8.
  FloatVector p = broadcast(0.0013926376F);
  p = multiply_add(p, r, broadcast(0.008363333082F));
  p = multiply_add(p, r, broadcast(0.04166655346F));
  p = multiply_add(p, r, broadcast(0.1666657606F));
  p = multiply_add(p, r, broadcast(0.5F));
  return {multiply_add(p * r, r, r), power};
}

/// 2^power, −127 < power < 128
inline FloatVector power_of_two(IntVector power) {
  return reinterpret_cast<FloatVector>((power + 127) << 23);
}

// Comparisons with NaN are false, so it passes.
inline FloatVector at_least(FloatVector x, float low) {
  return x < broadcast(low) ? broadcast(low) : x;
}
inline FloatVector at_most(FloatVector x, float high) {
  return x > broadcast(high) ? broadcast(high) : x;
}

inline FloatVector vexp(FloatVector x) {
  const SplitExp e = split_exp(at_least(at_most(x, 89.0F), -104.0F));
  // Two powers, since one cannot reach from the smallest subnormal to the largest number.
  const IntVector half = e.power >> 1;
  return (e.fraction + broadcast(1.0F)) * power_of_two(half) * power_of_two(e.power - half);
}

inline FloatVector absolute(FloatVector x) {
  return reinterpret_cast<FloatVector>(reinterpret_cast<IntVector>(x) & 0x7FFFFFFF);
}

/// With m = exp(2|x|) − 1, which is accurate for small x too: tanh(|x|) = m / (m + 2).
inline FloatVector vtanh(FloatVector x) {
  const SplitExp e = split_exp(at_most(absolute(x + x), 20.0F));
  const FloatVector scale = power_of_two(e.power);
  const FloatVector m = multiply_add(e.fraction, scale, scale - broadcast(1.0F));
  const FloatVector magnitude = quotient(m, m + broadcast(2.0F));
  const IntVector sign = reinterpret_cast<IntVector>(x) & static_cast<int32_t>(0x80000000);
  return reinterpret_cast<FloatVector>(reinterpret_cast<IntVector>(magnitude) | sign);
}

inline FloatVector vsigmoid(FloatVector x) {
  const FloatVector e = vexp(-absolute(x));
  const FloatVector one = broadcast(1.0F);
  return quotient(x < FloatVector{} ? e : one, one + e);
}

// In double the library's functions, lane by lane.
template <class F>
inline Vector<double> by_lane(Vector<double> x, F function) {
  for (int lane = 0; lane < kLanes<double>; ++lane) x[lane] = function(x[lane]);
  return x;
}
inline Vector<double> vexp(Vector<double> x) {
  return by_lane(x, [](double v) { return __builtin_exp(v); });
}
inline Vector<double> vtanh(Vector<double> x) {
  return by_lane(x, [](double v) { return __builtin_tanh(v); });
}
inline Vector<double> vsigmoid(Vector<double> x) {
  return by_lane(x, [](double v) {
    const double e = __builtin_exp(-__builtin_fabs(v));
    return (v < 0 ? e : 1.0) / (1.0 + e);
  });
}

}  // namespace
}  // namespace hsm::kernels
