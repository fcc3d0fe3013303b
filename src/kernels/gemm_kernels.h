#pragma once
#include <cstdint>

#include "kernels/instruction_set.h"

namespace hsm::kernels {

// What gemm.h's functions call: the same loops compiled once an instruction set. Tests reach every set
// through these tables; all else uses gemm.h.

/// C[m, n] = A·B with the output's columns across the vector: an output starts at C (when `accumulate`) plus
/// bias[n] (unless null), then adds A[i, kk] · B[kk, j] for kk ascending, each one multiply-add.
template <class T>
struct Product {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;  ///< A[i, kk] = a[i · a_row + kk · a_k]
  int64_t a_row = 0;
  int64_t a_k = 0;
  const T* b = nullptr;  ///< B[kk, j] = b[kk · b_k + (j / panel) · b_panel + j % panel]
  int64_t b_k = 0;
  int64_t b_panel = 0;
  bool packed = false;  ///< B lies in panels: b_k is `panel`, and the last panel is padded
  const T* bias = nullptr;
  bool accumulate = false;
  T* c = nullptr;
  int64_t ldc = 0;
  int64_t blocks = 1;  ///< so many A and C, `a_block` and `c_block` values apart, by the same packed B
  int64_t a_block = 0;
  int64_t c_block = 0;
};

/// C[m, n] = A·Bᵀ plus bias[n] (unless null) with k across the vector, for rows of B that are used few
/// times: lane l sums A[i, kk] · B[j, kk] over kk ≡ l ascending, lanes are added in a fixed order, then the
/// bias.
template <class T>
struct RowProduct {
  int64_t m = 0;
  int64_t n = 0;
  int64_t k = 0;
  const T* a = nullptr;  ///< row i at a + i · lda, or at a_rows[i] when that is given
  int64_t lda = 0;
  const T* const* a_rows = nullptr;
  const T* b = nullptr;
  int64_t ldb = 0;
  const T* bias = nullptr;
  T* c = nullptr;
  int64_t ldc = 0;
};

template <class T>
struct GemmKernels {
  int64_t panel;  ///< columns of a packed panel
  void (*product)(const Product<T>&);
  void (*row_product)(const RowProduct<T>&);
};

const GemmKernels<float>& gemm_kernels_portable(float);
const GemmKernels<double>& gemm_kernels_portable(double);
const GemmKernels<float>& gemm_kernels_avx2(float);
const GemmKernels<double>& gemm_kernels_avx2(double);
const GemmKernels<float>& gemm_kernels_avx512(float);
const GemmKernels<double>& gemm_kernels_avx512(double);

template <class T>
const GemmKernels<T>& gemm_kernels(InstructionSet set);
/// Those that gemm.h uses.
template <class T>
const GemmKernels<T>& active_gemm_kernels();

/// Values of `n` columns of length `k` in packed panels, and the packing of weights [n, k] to them.
int64_t packed_size(int64_t n, int64_t k, int64_t panel);
template <class T>
void pack(const T* weights, int64_t n, int64_t k, int64_t ld, int64_t panel, T* packed);

}  // namespace hsm::kernels
