#pragma once
#include <cstdint>

#include "kernels/instruction_set.h"

namespace hsm::kernels {

/// vector_math.h's functions for one instruction set.
template <class T>
struct VectorMathKernels {
  T (*log_sum_exp)(const T*, int64_t);
  void (*log_softmax)(T*, int64_t);
  T (*softmax)(T*, int64_t, T);
  void (*exp_minus)(T*, int64_t, T);
  void (*tanh_inplace)(T*, int64_t);
  void (*sigmoid_inplace)(T*, int64_t);
  void (*lstm_pointwise)(const T*, int64_t, T*, T*);
  void (*gru_pointwise)(const T*, const T*, int64_t, T*);
};

const VectorMathKernels<float>& vector_math_portable(float);
const VectorMathKernels<double>& vector_math_portable(double);
const VectorMathKernels<float>& vector_math_avx2(float);
const VectorMathKernels<double>& vector_math_avx2(double);
const VectorMathKernels<float>& vector_math_avx512(float);
const VectorMathKernels<double>& vector_math_avx512(double);

template <class T>
const VectorMathKernels<T>& vector_math_kernels(InstructionSet set);

}  // namespace hsm::kernels
