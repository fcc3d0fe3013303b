#pragma once
// The loops of vector_math_kernels.h; see simd.h for who may include this file.
#include "kernels/simd.h"
#include "kernels/vector_math_kernels.h"

namespace hsm::kernels {
namespace {

using FloatVector = Vector<float>;
using IntVector = Integers<float>;

/// exp(x) = scale_a · scale_b · (1 + fraction), with scales that are powers of two. Two of them, since one
/// cannot reach from the smallest subnormal to the largest number.
struct SplitExp {
  FloatVector fraction;  ///< exp(r) − 1 for |r| ≤ log(2)/2
  FloatVector scale_a;
  FloatVector scale_b;
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
  const IntVector half = power >> 1;
  return {multiply_add(p * r, r, r), reinterpret_cast<FloatVector>((half + 127) << 23),
          reinterpret_cast<FloatVector>((power - half + 127) << 23)};
}

inline FloatVector clamp(FloatVector x, float low, float high) {
  // Comparisons with NaN are false, so it passes.
  x = x > broadcast(high) ? broadcast(high) : x;
  return x < broadcast(low) ? broadcast(low) : x;
}

inline FloatVector vexp(FloatVector x) {
  const SplitExp e = split_exp(clamp(x, -104.0F, 89.0F));
  return (e.fraction + broadcast(1.0F)) * e.scale_a * e.scale_b;
}

inline FloatVector absolute(FloatVector x) {
  return reinterpret_cast<FloatVector>(reinterpret_cast<IntVector>(x) & 0x7FFFFFFF);
}

/// With m = exp(2|x|) − 1, which is accurate for small x too: tanh(|x|) = m / (m + 2).
inline FloatVector vtanh(FloatVector x) {
  const SplitExp e = split_exp(clamp(absolute(x + x), 0.0F, 20.0F));
  const FloatVector scale = e.scale_a * e.scale_b;
  const FloatVector m = multiply_add(e.fraction, scale, scale - broadcast(1.0F));
  const FloatVector magnitude = m / (m + broadcast(2.0F));
  const IntVector sign = reinterpret_cast<IntVector>(x) & static_cast<int32_t>(0x80000000);
  return reinterpret_cast<FloatVector>(reinterpret_cast<IntVector>(magnitude) | sign);
}

inline FloatVector vsigmoid(FloatVector x) {
  const FloatVector e = vexp(-absolute(x));
  const FloatVector one = broadcast(1.0F);
  return (x < FloatVector{} ? e : one) / (one + e);
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
