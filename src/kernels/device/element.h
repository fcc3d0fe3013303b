#pragma once
#include <cmath>
#include <cstdint>
#include <cstring>

// Scalars of device kernels. The same source is compiled by nvcc for the device and by the host compiler for
// emulation, so nothing here needs CUDA's headers unless nvcc reads it.
#ifdef __CUDACC__
#define HSM_DEVICE __device__ __forceinline__
#define HSM_HOST_DEVICE __host__ __device__ __forceinline__
#define HSM_UNROLL _Pragma("unroll")
#else
#define HSM_DEVICE inline
#define HSM_HOST_DEVICE inline
#define HSM_UNROLL
#endif

namespace hsm::kernels::device {

/// 16 bits of a float: sign, 8 bits of exponent, 7 of fraction. Conversion rounds to nearest even.
struct BFloat16 {
  uint16_t bits;
};

/// IEEE binary16. Conversion rounds to nearest even; what is too large becomes infinite.
struct Half {
  uint16_t bits;
};

HSM_HOST_DEVICE uint32_t bits_of(float value) {
  uint32_t bits;
  memcpy(&bits, &value, sizeof bits);
  return bits;
}

HSM_HOST_DEVICE float float_of(uint32_t bits) {
  float value;
  memcpy(&value, &bits, sizeof value);
  return value;
}

HSM_HOST_DEVICE float to_float(BFloat16 value) {
  return float_of(static_cast<uint32_t>(value.bits) << 16);
}

HSM_HOST_DEVICE BFloat16 to_bfloat16(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7FFFFFFFU) > 0x7F800000U) return {static_cast<uint16_t>((bits >> 16) | 0x40U)};  // NaN stays
  return {static_cast<uint16_t>((bits + 0x7FFFU + ((bits >> 16) & 1U)) >> 16)};
}

HSM_HOST_DEVICE float to_float(Half value) {
  const uint32_t sign = static_cast<uint32_t>(value.bits & 0x8000U) << 16;
  const uint32_t exponent = (value.bits >> 10) & 31U;
  const uint32_t fraction = value.bits & 0x3FFU;
  if (exponent == 31) return float_of(sign | 0x7F800000U | (fraction << 13));
  if (exponent != 0) return float_of(sign | ((exponent + 112) << 23) | (fraction << 13));
  const float magnitude = static_cast<float>(fraction) * 0x1p-24F;  // subnormal
  return sign != 0 ? -magnitude : magnitude;
}

HSM_HOST_DEVICE Half to_half(float value) {
  const uint32_t bits = bits_of(value);
  const auto sign = static_cast<uint16_t>((bits >> 16) & 0x8000U);
  const uint32_t magnitude = bits & 0x7FFFFFFFU;
  if (magnitude > 0x7F800000U) return {static_cast<uint16_t>(sign | 0x7E00U)};   // NaN
  if (magnitude >= 0x477FF000U) return {static_cast<uint16_t>(sign | 0x7C00U)};  // rounds beyond 65504
  if (magnitude < 0x38800000U) {
    // Subnormal: beside 0.5 the last bit of a float is 2^-24, so the addition rounds.
    const float aligned = float_of(magnitude) + 0.5F;
    return {static_cast<uint16_t>(sign | (bits_of(aligned) - bits_of(0.5F)))};
  }
  const uint32_t rounded = magnitude + 0xFFFU + ((magnitude >> 13) & 1U);
  return {static_cast<uint16_t>(sign | ((rounded - (112U << 23)) >> 13))};
}

/// Conversions between what is stored (T) and what is computed with (Sum).
template <class T>
struct Element;

template <>
struct Element<float> {
  HSM_HOST_DEVICE static float load(float value) { return value; }
  HSM_HOST_DEVICE static float store(float value) { return value; }
};
template <>
struct Element<double> {
  HSM_HOST_DEVICE static double load(double value) { return value; }
  HSM_HOST_DEVICE static double store(double value) { return value; }
};
template <>
struct Element<BFloat16> {
  HSM_HOST_DEVICE static float load(BFloat16 value) { return to_float(value); }
  HSM_HOST_DEVICE static BFloat16 store(float value) { return to_bfloat16(value); }
};
template <>
struct Element<Half> {
  HSM_HOST_DEVICE static float load(Half value) { return to_float(value); }
  HSM_HOST_DEVICE static Half store(float value) { return to_half(value); }
};

/// A float whose lower 13 bits are zero: what tensor cores keep of it as tf32, rounded to nearest, ties away.
HSM_HOST_DEVICE float to_tf32(float value) {
  const uint32_t bits = bits_of(value);
  if ((bits & 0x7F800000U) == 0x7F800000U) return value;
  return float_of((bits + 0x1000U) & 0xFFFFE000U);
}

template <class S>
HSM_HOST_DEVICE S minus_infinity() {
  return -static_cast<S>(INFINITY);
}

template <class I>
HSM_HOST_DEVICE I smaller(I a, I b) {
  return b < a ? b : a;
}
template <class I>
HSM_HOST_DEVICE I larger(I a, I b) {
  return a < b ? b : a;
}
template <class I>
HSM_HOST_DEVICE constexpr I divide_up(I a, I b) {
  return (a + b - 1) / b;
}

HSM_HOST_DEVICE float exponential(float x) {
#ifdef __CUDA_ARCH__
  return exp2f(x * 1.44269504088896340736F);
#else
  return std::exp(x);
#endif
}
HSM_HOST_DEVICE double exponential(double x) {
  return exp(x);
}
HSM_HOST_DEVICE float logarithm(float x) {
  return logf(x);
}
HSM_HOST_DEVICE double logarithm(double x) {
  return log(x);
}

}  // namespace hsm::kernels::device
