#pragma once
// Vectors of one instruction set. Only the sources that are compiled once a set include this file, the
// *_loops.h beside it and vector_functions.h. All of it lies in unnamed namespaces and calls no inline
// function of the standard library: a function compiled for AVX-512 must not be the one that the linker keeps
// for everybody.
#include <cstdint>
#if defined(__AVX2__)
#include <immintrin.h>
#endif

#define HSM_UNROLL _Pragma("GCC unroll 16")
#define HSM_UNROLL_TWICE _Pragma("GCC unroll 2")

namespace hsm::kernels {
namespace {

#if defined(__AVX512F__)
inline constexpr int kVectorBytes = 64;
inline constexpr int kRegisters = 32;
#elif defined(__AVX2__)
inline constexpr int kVectorBytes = 32;
inline constexpr int kRegisters = 16;
#else
inline constexpr int kVectorBytes = 16;
inline constexpr int kRegisters = 16;
#endif

template <class T>
struct Types;
template <>
struct Types<float> {
  typedef float Vector __attribute__((vector_size(kVectorBytes)));
  typedef float Unaligned __attribute__((vector_size(kVectorBytes), aligned(4), may_alias));
  typedef int32_t Integers __attribute__((vector_size(kVectorBytes)));
};
template <>
struct Types<double> {
  typedef double Vector __attribute__((vector_size(kVectorBytes)));
  typedef double Unaligned __attribute__((vector_size(kVectorBytes), aligned(8), may_alias));
  typedef int64_t Integers __attribute__((vector_size(kVectorBytes)));
};

template <class T>
using Vector = typename Types<T>::Vector;
template <class T>
using Integers = typename Types<T>::Integers;

template <class T>
inline constexpr int kLanes = kVectorBytes / static_cast<int>(sizeof(T));

template <class T>
inline Vector<T> load(const T* from) {
  return *reinterpret_cast<const typename Types<T>::Unaligned*>(from);
}

template <class T>
inline void store(T* to, Vector<T> value) {
  *reinterpret_cast<typename Types<T>::Unaligned*>(to) = value;
}

#if defined(__AVX512F__)

inline Vector<float> load_first(const float* from, int64_t count) {
  return _mm512_maskz_loadu_ps(static_cast<__mmask16>((1U << count) - 1), from);
}
inline Vector<double> load_first(const double* from, int64_t count) {
  return _mm512_maskz_loadu_pd(static_cast<__mmask8>((1U << count) - 1), from);
}
inline void store_first(float* to, Vector<float> value, int64_t count) {
  _mm512_mask_storeu_ps(to, static_cast<__mmask16>((1U << count) - 1), value);
}
inline void store_first(double* to, Vector<double> value, int64_t count) {
  _mm512_mask_storeu_pd(to, static_cast<__mmask8>((1U << count) - 1), value);
}
inline Vector<float> broadcast(float value) {
  return _mm512_set1_ps(value);
}
inline Vector<double> broadcast(double value) {
  return _mm512_set1_pd(value);
}
inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
  return _mm512_fmadd_ps(a, b, c);
}
inline Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
  return _mm512_fmadd_pd(a, b, c);
}

#elif defined(__AVX2__)

inline __m256i first_lanes(int64_t count, float) {
  return _mm256_cmpgt_epi32(_mm256_set1_epi32(static_cast<int>(count)),
                            _mm256_setr_epi32(0, 1, 2, 3, 4, 5, 6, 7));
}
inline __m256i first_lanes(int64_t count, double) {
  return _mm256_cmpgt_epi64(_mm256_set1_epi64x(count), _mm256_setr_epi64x(0, 1, 2, 3));
}
inline Vector<float> load_first(const float* from, int64_t count) {
  return _mm256_maskload_ps(from, first_lanes(count, 0.0F));
}
inline Vector<double> load_first(const double* from, int64_t count) {
  return _mm256_maskload_pd(from, first_lanes(count, 0.0));
}
inline void store_first(float* to, Vector<float> value, int64_t count) {
  _mm256_maskstore_ps(to, first_lanes(count, 0.0F), value);
}
inline void store_first(double* to, Vector<double> value, int64_t count) {
  _mm256_maskstore_pd(to, first_lanes(count, 0.0), value);
}
inline Vector<float> broadcast(float value) {
  return _mm256_set1_ps(value);
}
inline Vector<double> broadcast(double value) {
  return _mm256_set1_pd(value);
}
inline Vector<float> multiply_add(Vector<float> a, Vector<float> b, Vector<float> c) {
  return _mm256_fmadd_ps(a, b, c);
}
inline Vector<double> multiply_add(Vector<double> a, Vector<double> b, Vector<double> c) {
  return _mm256_fmadd_pd(a, b, c);
}

#else

template <class T>
inline Vector<T> load_first(const T* from, int64_t count) {
  Vector<T> value = {};
  for (int64_t lane = 0; lane < count; ++lane) value[lane] = from[lane];
  return value;
}
template <class T>
inline void store_first(T* to, Vector<T> value, int64_t count) {
  for (int64_t lane = 0; lane < count; ++lane) to[lane] = value[lane];
}
inline Vector<float> broadcast(float value) {
  return Vector<float>{value, value, value, value};
}
inline Vector<double> broadcast(double value) {
  return Vector<double>{value, value};
}
// Two roundings: the baseline has no fused multiply-add, and contraction is off.
template <class V>
inline V multiply_add(V a, V b, V c) {
  return a * b + c;
}

#endif

inline Vector<float> square_root(Vector<float> x) {
#if defined(__AVX512F__)
  return _mm512_maskz_sqrt_ps(static_cast<__mmask16>(-1), x);
#elif defined(__AVX2__)
  return _mm256_sqrt_ps(x);
#else
  for (int lane = 0; lane < kLanes<float>; ++lane) x[lane] = __builtin_sqrtf(x[lane]);
  return x;
#endif
}

/// n / d within an ulp, for |d| from 1 to 1e18 or so: the approximate reciprocal is improved twice, which
/// takes a third of a division's time. NaN stays NaN.
inline Vector<float> quotient(Vector<float> n, Vector<float> d) {
#if defined(__AVX512F__)
  const Vector<float> one = broadcast(1.0F);
  Vector<float> inverse = _mm512_maskz_rcp14_ps(static_cast<__mmask16>(-1), d);
  inverse = multiply_add(inverse, multiply_add(-d, inverse, one), inverse);
  const Vector<float> near = n * inverse;
  return multiply_add(inverse, multiply_add(-d, near, n), near);
#else
  return n / d;
#endif
}

/// Calls step(place, read, write) for each vector of [0, n), where read(pointer) and write(pointer, value)
/// touch only what lies inside.
template <class T, class Step>
inline void for_vectors(int64_t n, Step step) {
  int64_t i = 0;
  for (; i + kLanes<T> <= n; i += kLanes<T>) {
    step(
        i, [](const T* from) { return load(from); }, [](T* to, Vector<T> value) { store(to, value); });
  }
  if (i < n) {
    const int64_t left = n - i;
    step(
        i, [left](const T* from) { return load_first(from, left); },
        [left](T* to, Vector<T> value) { store_first(to, value, left); });
  }
}

/// Sum of the lanes by halving: lane l with lane l + half, until one is left.
template <class T>
inline T sum_lanes(Vector<T> value) {
  T lanes[kLanes<T>];
  store(lanes, value);
  HSM_UNROLL
  for (int half = kLanes<T> / 2; half > 0; half /= 2) {
    HSM_UNROLL
    for (int lane = 0; lane < half; ++lane) lanes[lane] += lanes[lane + half];
  }
  return lanes[0];
}

#if defined(__AVX2__)
inline __m128 fold_lanes(Vector<float> value) {
#if defined(__AVX512F__)
  const __m256 half = __builtin_shufflevector(value, value, 0, 1, 2, 3, 4, 5, 6, 7) +
                      __builtin_shufflevector(value, value, 8, 9, 10, 11, 12, 13, 14, 15);
#else
  const __m256 half = value;
#endif
  return _mm256_castps256_ps128(half) + _mm256_extractf128_ps(half, 1);
}
// Written as shuffles, since GCC 12 calls the 512-bit intrinsics' undefined operands uninitialised.
#if defined(__AVX512F__)
#define HSM_SHUFFLE_FOURS(a, b, w, x, y, z)                                                                 \
  __builtin_shufflevector(a, b, w, x, y, z, w + 4, x + 4, y + 4, z + 4, w + 8, x + 8, y + 8, z + 8, w + 12, \
                          x + 12, y + 12, z + 12)
#else
#define HSM_SHUFFLE_FOURS(a, b, w, x, y, z) \
  __builtin_shufflevector(a, b, w, x, y, z, w + 4, x + 4, y + 4, z + 4)
#endif

/// Interleaves lanes 0, 1 (2, 3 when `High`) of each group of four: a, b, a, b.
template <bool High>
inline Vector<float> interleave(Vector<float> a, Vector<float> b) {
  constexpr int kFrom = High ? 2 : 0;
  return HSM_SHUFFLE_FOURS(a, b, kFrom, kLanes<float> + kFrom, kFrom + 1, kLanes<float> + kFrom + 1);
}
/// Lanes 0, 1 (2, 3 when `High`) of each group of four of a, then of b.
template <bool High>
inline Vector<float> join(Vector<float> a, Vector<float> b) {
  constexpr int kFrom = High ? 2 : 0;
  return HSM_SHUFFLE_FOURS(a, b, kFrom, kFrom + 1, kLanes<float> + kFrom, kLanes<float> + kFrom + 1);
}
#undef HSM_SHUFFLE_FOURS
#endif

/// out[i] = sum of the lanes of value[i] for four vectors at once: first in groups of four lanes (0 + 2) +
/// (1 + 3), then the groups by halving.
inline void sum_lanes_of_four(const Vector<float>* value, float* out) {
#if defined(__AVX2__)
  const Vector<float> ab = interleave<false>(value[0], value[1]) + interleave<true>(value[0], value[1]);
  const Vector<float> cd = interleave<false>(value[2], value[3]) + interleave<true>(value[2], value[3]);
  _mm_storeu_ps(out, fold_lanes(join<false>(ab, cd) + join<true>(ab, cd)));
#else
  for (int i = 0; i < 4; ++i) out[i] = (value[i][0] + value[i][2]) + (value[i][1] + value[i][3]);
#endif
}
inline void sum_lanes_of_four(const Vector<double>* value, double* out) {
  for (int i = 0; i < 4; ++i) out[i] = sum_lanes<double>(value[i]);
}

}  // namespace
}  // namespace hsm::kernels
