#pragma once
#include <cstdint>

#include "kernels/cell_pointwise.h"
#include "kernels/instruction_set.h"

namespace hsm::kernels {

/// cell_pointwise.h's functions for one instruction set.
template <class T>
struct CellKernels {
  void (*lstm_forward)(int64_t, T*, const T*, T*, T*);
  void (*lstm_backward)(int64_t, T*, const T*, const T*, OutputGradient<T>, T*);
  void (*gru_forward)(int64_t, T*, const T*, T*, const T*, T*);
  void (*gru_backward)(int64_t, T*, T*, const T*, OutputGradient<T>, T*);
  void (*plain_forward)(Cell, int64_t, const T*, T*);
  void (*plain_backward)(Cell, int64_t, const T*, OutputGradient<T>, T*);
};

const CellKernels<float>& cell_kernels_portable(float);
const CellKernels<double>& cell_kernels_portable(double);
const CellKernels<float>& cell_kernels_avx2(float);
const CellKernels<double>& cell_kernels_avx2(double);
const CellKernels<float>& cell_kernels_avx512(float);
const CellKernels<double>& cell_kernels_avx512(double);

template <class T>
const CellKernels<T>& cell_kernels(InstructionSet set);

}  // namespace hsm::kernels
