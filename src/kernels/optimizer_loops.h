#pragma once
// The loops of optimizer_kernels.h; see simd.h for who may include this file.
#include "kernels/optimizer_kernels.h"
#include "kernels/simd.h"

namespace hsm::kernels {
namespace {

template <OptimizerKind Kind>
void update_range(const UpdateRule& rule, const UpdateRange& range) {
  using Floats = Vector<float>;
  const Floats rate = broadcast(-rule.rate);
  const Floats scale = broadcast(rule.scale);
  const Floats decay = broadcast(rule.decay);
  const Floats epsilon = broadcast(rule.epsilon);
  for_vectors<float>(range.count, [&](int64_t i, auto read, auto write) {
    Floats value = read(range.value + i);
    Floats d = range.gradient == nullptr ? Floats{} : read(range.gradient + i) * scale;
    if constexpr (Kind == OptimizerKind::adamw) {
      value *= broadcast(rule.keep);
    } else {
      d = multiply_add(decay, value, d);
    }
    if constexpr (Kind == OptimizerKind::sgd) {
      value = multiply_add(rate, d, value);
    } else if constexpr (Kind == OptimizerKind::momentum) {
      const Floats first = multiply_add(broadcast(rule.momentum), read(range.first + i), d);
      write(range.first + i, first);
      value = multiply_add(rate, first, value);
    } else if constexpr (Kind == OptimizerKind::adagrad) {
      const Floats second = multiply_add(d, d, read(range.second + i));
      write(range.second + i, second);
      const Floats step = d / (square_root(second) + epsilon);
      // 0 / 0 when nothing was ever accumulated and epsilon is 0.
      value = multiply_add(rate, d == Floats{} ? Floats{} : step, value);
    } else {
      Floats first = read(range.first + i);
      first = multiply_add(broadcast(rule.rest1), d - first, first);
      write(range.first + i, first);
      const Floats second =
          multiply_add(broadcast(rule.rest2) * d, d, broadcast(rule.beta2) * read(range.second + i));
      write(range.second + i, second);
      value = multiply_add(
          rate, first / multiply_add(square_root(second), broadcast(rule.root_factor), epsilon), value);
    }
    write(range.value + i, value);
  });
}

inline void update_any(const UpdateRule& rule, const UpdateRange& range) {
  switch (rule.kind) {
    case OptimizerKind::sgd:
      return update_range<OptimizerKind::sgd>(rule, range);
    case OptimizerKind::momentum:
      return update_range<OptimizerKind::momentum>(rule, range);
    case OptimizerKind::adagrad:
      return update_range<OptimizerKind::adagrad>(rule, range);
    case OptimizerKind::adam:
      return update_range<OptimizerKind::adam>(rule, range);
    case OptimizerKind::adamw:
      return update_range<OptimizerKind::adamw>(rule, range);
  }
}

inline double sum_of_squares_loop(const float* x, int64_t count) {
  constexpr int kWide = 8;
  constexpr int kSums = 4;
  typedef double Doubles __attribute__((vector_size(kWide * sizeof(double))));
  typedef float Floats __attribute__((vector_size(kWide * sizeof(float)), aligned(4), may_alias));
  Doubles sums[kSums] = {};
  int64_t i = 0;
  for (; i + kWide * kSums <= count; i += kWide * kSums) {
    HSM_UNROLL
    for (int s = 0; s < kSums; ++s) {
      const Doubles value =
          __builtin_convertvector(*reinterpret_cast<const Floats*>(x + i + s * kWide), Doubles);
      sums[s] += value * value;
    }
  }
  for (int64_t at = 0; i < count; ++i, ++at) {
    const double value = x[i];
    sums[at / kWide][at % kWide] += value * value;
  }
  const Doubles all = (sums[0] + sums[1]) + (sums[2] + sums[3]);
  double sum = 0;
  for (int lane = 0; lane < kWide; ++lane) sum += all[lane];
  return sum;
}

constexpr OptimizerKernels kOptimizerKernels = {update_any, sum_of_squares_loop};

}  // namespace
}  // namespace hsm::kernels
