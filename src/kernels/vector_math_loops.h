#pragma once
// The loops of vector_math_kernels.h; see simd.h for who may include this file.
#include "kernels/simd.h"
#include "kernels/vector_functions.h"
#include "kernels/vector_math_kernels.h"

namespace hsm::kernels {
namespace {

template <class T>
T largest(const T* x, int64_t n) {
  const Vector<T> lowest = broadcast(-static_cast<T>(__builtin_inf()));
  Vector<T> most = lowest;
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> value = load(x + i);
    most = value > most ? value : most;
  }
  T lanes[kLanes<T>];
  store(lanes, most);
  T result = lanes[0];
  for (const T value : lanes) result = value > result ? value : result;
  for (; i < n; ++i) result = x[i] > result ? x[i] : result;
  return result;
}

/// Σ exp(x − shift), each term given to `keep`(place, value, how many of its lanes count).
template <class T, class Keep>
inline T sum_of_exp(const T* x, int64_t n, T shift, Keep keep) {
  const Vector<T> shifts = broadcast(shift);
  Vector<T> sum = {};
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    const Vector<T> value = vexp(load(x + i) - shifts);
    keep(i, value, static_cast<int64_t>(kLanes<T>));
    sum += value;
  }
  if (i < n) {
    T last[kLanes<T>];
    for (T& value : last) value = -static_cast<T>(__builtin_inf());
    __builtin_memcpy(last, x + i, static_cast<size_t>(n - i) * sizeof(T));
    const Vector<T> value = vexp(load(last) - shifts);
    keep(i, value, n - i);
    sum += value;
  }
  return sum_lanes<T>(sum);
}

/// What is subtracted before exp: the largest, so that nothing overflows. When that is infinite there is
/// nothing to scale by: exp then gives 0 or infinity as it should, and a NaN among x stays.
template <class T>
inline T exponent_shift(const T* x, int64_t n) {
  const T most = largest(x, n);
  return __builtin_isinf(most) ? T{0} : most;
}

template <class T>
inline T log_of_sum(T shift, T sum) {
  return static_cast<T>(static_cast<double>(shift) + __builtin_log(static_cast<double>(sum)));
}

template <class T>
T log_sum_exp(const T* x, int64_t n) {
  const T shift = exponent_shift(x, n);
  return log_of_sum(shift, sum_of_exp(x, n, shift, [](int64_t, Vector<T>, int64_t) {}));
}

template <class T>
T softmax(T* x, int64_t n, T scale) {
  const T shift = exponent_shift(x, n);
  const T sum = sum_of_exp(x, n, shift, [x](int64_t i, Vector<T> value, int64_t count) {
    if (count == kLanes<T>) {
      store(x + i, value);
    } else {
      store_first(x + i, value, count);
    }
  });
  const Vector<T> factor = broadcast(scale / sum);
  for_vectors<T>(n, [&](int64_t i, auto read, auto write) { write(x + i, read(x + i) * factor); });
  return log_of_sum(shift, sum);
}

template <class T>
void log_softmax(T* x, int64_t n) {
  const Vector<T> shift = broadcast(log_sum_exp(x, n));
  for_vectors<T>(n, [&](int64_t i, auto read, auto write) {
    const Vector<T> value = read(x + i) - shift;
    write(x + i, value > Vector<T>{} ? Vector<T>{} : value);
  });
}

template <class T>
void exp_minus(T* x, int64_t n, T lse) {
  const Vector<T> shift = broadcast(lse);
  for_vectors<T>(n, [&](int64_t i, auto read, auto write) { write(x + i, vexp(read(x + i) - shift)); });
}

template <class T>
void tanh_inplace(T* x, int64_t n) {
  for_vectors<T>(n, [&](int64_t i, auto read, auto write) { write(x + i, vtanh(read(x + i))); });
}

template <class T>
void sigmoid_inplace(T* x, int64_t n) {
  for_vectors<T>(n, [&](int64_t i, auto read, auto write) { write(x + i, vsigmoid(read(x + i))); });
}

template <class T>
void lstm_pointwise(const T* gates, int64_t hidden, T* c, T* h) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    const Vector<T> in = vsigmoid(read(gates + u));
    const Vector<T> forget = vsigmoid(read(gates + hidden + u));
    const Vector<T> fresh = vtanh(read(gates + 2 * hidden + u));
    const Vector<T> out = vsigmoid(read(gates + 3 * hidden + u));
    const Vector<T> cell = multiply_add(forget, read(c + u), in * fresh);
    write(c + u, cell);
    write(h + u, out * vtanh(cell));
  });
}

template <class T>
void gru_pointwise(const T* from_input, const T* from_hidden, int64_t hidden, T* h) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    const Vector<T> reset = vsigmoid(read(from_input + u) + read(from_hidden + u));
    const Vector<T> keep = vsigmoid(read(from_input + hidden + u) + read(from_hidden + hidden + u));
    const Vector<T> fresh =
        vtanh(multiply_add(reset, read(from_hidden + 2 * hidden + u), read(from_input + 2 * hidden + u)));
    write(h + u, multiply_add(keep, read(h + u) - fresh, fresh));
  });
}

template <class T>
constexpr VectorMathKernels<T> kVectorMathKernels = {log_sum_exp<T>,    log_softmax<T>,  softmax<T>,
                                                     exp_minus<T>,      tanh_inplace<T>, sigmoid_inplace<T>,
                                                     lstm_pointwise<T>, gru_pointwise<T>};

}  // namespace
}  // namespace hsm::kernels
