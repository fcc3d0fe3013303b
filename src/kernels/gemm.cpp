#include "kernels/gemm.h"

#include <algorithm>
#include <cstring>

#include "kernels/gemm_kernels.h"

namespace hsm::kernels {
template <class T>
const GemmKernels<T>& gemm_kernels(InstructionSet set) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::avx512:
      return gemm_kernels_avx512(T{});
    case InstructionSet::avx2:
      return gemm_kernels_avx2(T{});
#endif
    default:
      return gemm_kernels_portable(T{});
  }
}

template <class T>
const GemmKernels<T>& active_gemm_kernels() {
  static const GemmKernels<T>& kernels = gemm_kernels<T>(active_instruction_set());
  return kernels;
}

int64_t packed_size(int64_t n, int64_t k, int64_t panel) {
  return (n + panel - 1) / panel * panel * k;
}

namespace {

/// to[j, i] = from[i, j] for 4 × 4 values.
void transpose_four(const double* from, int64_t ld, double* to, int64_t to_ld) {
  for (int64_t i = 0; i < 4; ++i) {
    for (int64_t j = 0; j < 4; ++j) to[j * to_ld + i] = from[i * ld + j];
  }
}

void transpose_four(const float* from, int64_t ld, float* to, int64_t to_ld) {
  typedef float Four __attribute__((vector_size(16)));
  Four row[4];
  for (int64_t i = 0; i < 4; ++i) std::memcpy(&row[i], from + i * ld, sizeof(Four));
  const Four a = __builtin_shufflevector(row[0], row[1], 0, 4, 1, 5);
  const Four b = __builtin_shufflevector(row[2], row[3], 0, 4, 1, 5);
  const Four c = __builtin_shufflevector(row[0], row[1], 2, 6, 3, 7);
  const Four d = __builtin_shufflevector(row[2], row[3], 2, 6, 3, 7);
  const Four column[4] = {
      __builtin_shufflevector(a, b, 0, 1, 4, 5), __builtin_shufflevector(a, b, 2, 3, 6, 7),
      __builtin_shufflevector(c, d, 0, 1, 4, 5), __builtin_shufflevector(c, d, 2, 3, 6, 7)};
  for (int64_t j = 0; j < 4; ++j) std::memcpy(to + j * to_ld, &column[j], sizeof(Four));
}

/// One panel of at most `panel` rows of the weights.
template <class T>
void pack_panel(const T* weights, int64_t rows, int64_t k, int64_t ld, int64_t panel, T* to) {
  const int64_t fours = rows / 4 * 4;
  int64_t kk = 0;
  for (; kk + 4 <= k; kk += 4) {
    for (int64_t r = 0; r < fours; r += 4)
      transpose_four(weights + r * ld + kk, ld, to + kk * panel + r, panel);
  }
  for (int64_t r = 0; r < rows; ++r) {
    for (int64_t left = r < fours ? kk : 0; left < k; ++left) to[left * panel + r] = weights[r * ld + left];
  }
  if (rows == panel) return;
  for (int64_t row = 0; row < k; ++row) std::fill(to + row * panel + rows, to + (row + 1) * panel, T{0});
}

}  // namespace

template <class T>
void pack(const T* weights, int64_t n, int64_t k, int64_t ld, int64_t panel, T* packed) {
  for (int64_t j = 0; j < n; j += panel) {
    pack_panel(weights + j * ld, std::min(panel, n - j), k, ld, panel, packed + j * k);
  }
}

namespace {

// Rows of weights, or of values, that one item of work packs.
constexpr int64_t kPackRows = 256;

/// Body(first, last) for pieces of [0, count) of at least `least` that are multiples of it, but the last.
template <class Body>
void for_pieces(int64_t count, int64_t least, ThreadPool* pool, Body body) {
  if (pool == nullptr) {
    body(int64_t{0}, count);
    return;
  }
  const int64_t piece = (kPackRows + least - 1) / least * least;
  pool->run((count + piece - 1) / piece,
            [&](int64_t item, int) { body(item * piece, std::min(count, (item + 1) * piece)); });
}

}  // namespace

template <class T>
void PackedMatrix<T>::resize(int64_t n, int64_t k) {
  n_ = n;
  k_ = k;
  data_.resize(static_cast<size_t>(packed_size(n, k, active_gemm_kernels<T>().panel)));
}

template <class T>
void PackedMatrix<T>::assign(const T* weights, int64_t n, int64_t k, ThreadPool* pool) {
  resize(n, k);
  const int64_t panel = active_gemm_kernels<T>().panel;
  for_pieces(n, panel, pool, [&](int64_t first, int64_t last) {
    pack(weights + first * k, last - first, k, k, panel, data_.data() + first * k);
  });
}

template <class T>
void PackedMatrix<T>::assign_transposed(const T* rows, int64_t n, int64_t k, ThreadPool* pool) {
  resize(n, k);
  const int64_t panel = active_gemm_kernels<T>().panel;
  const int64_t whole = n / panel * panel;
  for_pieces(k, 1, pool, [&](int64_t first, int64_t last) {
    for (int64_t row = first; row < last; ++row) {
      const T* from = rows + row * n;
      T* to = data_.data() + row * panel;
      for (int64_t j = 0; j < whole; j += panel) std::copy_n(from + j, panel, to + j * k);
      if (whole == n) continue;
      std::copy(from + whole, from + n, to + whole * k);
      std::fill(to + whole * k + (n - whole), to + whole * k + panel, T{0});
    }
  });
}

namespace {

/// A[i, kk] = a[i · a_row + kk · a_k]
template <class T>
Product<T> packed_product(int64_t m, const T* a, int64_t a_row, int64_t a_k, const PackedMatrix<T>& b, T* c,
                          int64_t ldc) {
  const int64_t panel = active_gemm_kernels<T>().panel;
  return {.m = m,
          .n = b.n(),
          .k = b.k(),
          .a = a,
          .a_row = a_row,
          .a_k = a_k,
          .b = b.data(),
          .b_k = panel,
          .b_panel = panel * b.k(),
          .packed = true,
          .c = c,
          .ldc = ldc};
}

}  // namespace

template <class T>
void gemm_packed(int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b, const T* bias, bool accumulate,
                 T* c, int64_t ldc) {
  Product<T> product = packed_product(m, a, lda, 1, b, c, ldc);
  product.bias = bias;
  product.accumulate = accumulate;
  active_gemm_kernels<T>().product(product);
}

template <class T>
void gemm_packed_blocks(const Blocks& blocks, int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b,
                        const T* bias, T* c, int64_t ldc) {
  Product<T> product = packed_product(m, a, lda, 1, b, c, ldc);
  product.bias = bias;
  product.blocks = blocks.count;
  product.a_block = blocks.a_stride;
  product.c_block = blocks.c_stride;
  active_gemm_kernels<T>().product(product);
}

template <class T>
void gemm_packed_tn(int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b, bool accumulate, T* c,
                    int64_t ldc) {
  Product<T> product = packed_product(m, a, 1, lda, b, c, ldc);
  product.accumulate = accumulate;
  active_gemm_kernels<T>().product(product);
}

template <class T>
void gemm_nt(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, const T* bias,
             T* c, int64_t ldc) {
  active_gemm_kernels<T>().row_product(
      {.m = m, .n = n, .k = k, .a = a, .lda = lda, .b = b, .ldb = ldb, .bias = bias, .c = c, .ldc = ldc});
}

template <class T>
void gemm_nt_rows(int64_t m, int64_t n, int64_t k, const T* const* a_rows, const T* b, int64_t ldb,
                  const T* bias, T* c, int64_t ldc) {
  active_gemm_kernels<T>().row_product(
      {.m = m, .n = n, .k = k, .a_rows = a_rows, .b = b, .ldb = ldb, .bias = bias, .c = c, .ldc = ldc});
}

template <class T>
void gemm_nn(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
             bool accumulate, T* c, int64_t ldc) {
  const GemmKernels<T>& kernels = active_gemm_kernels<T>();
  kernels.product({.m = m,
                   .n = n,
                   .k = k,
                   .a = a,
                   .a_row = lda,
                   .a_k = 1,
                   .b = b,
                   .b_k = ldb,
                   .b_panel = kernels.panel,
                   .accumulate = accumulate,
                   .c = c,
                   .ldc = ldc});
}

template <class T>
void gemm_tn(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
             bool accumulate, T* c, int64_t ldc) {
  const GemmKernels<T>& kernels = active_gemm_kernels<T>();
  kernels.product({.m = m,
                   .n = n,
                   .k = k,
                   .a = a,
                   .a_row = 1,
                   .a_k = lda,
                   .b = b,
                   .b_k = ldb,
                   .b_panel = kernels.panel,
                   .accumulate = accumulate,
                   .c = c,
                   .ldc = ldc});
}

#define HSM_INSTANTIATE(T)                                                                                   \
  template const GemmKernels<T>& gemm_kernels<T>(InstructionSet);                                            \
  template const GemmKernels<T>& active_gemm_kernels<T>();                                                   \
  template void pack(const T*, int64_t, int64_t, int64_t, int64_t, T*);                                      \
  template class PackedMatrix<T>;                                                                            \
  template void gemm_packed(int64_t, const T*, int64_t, const PackedMatrix<T>&, const T*, bool, T*,          \
                            int64_t);                                                                        \
  template void gemm_packed_blocks(const Blocks&, int64_t, const T*, int64_t, const PackedMatrix<T>&,        \
                                   const T*, T*, int64_t);                                                   \
  template void gemm_packed_tn(int64_t, const T*, int64_t, const PackedMatrix<T>&, bool, T*, int64_t);       \
  template void gemm_nt(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, const T*, T*,       \
                        int64_t);                                                                            \
  template void gemm_nt_rows(int64_t, int64_t, int64_t, const T* const*, const T*, int64_t, const T*, T*,    \
                             int64_t);                                                                       \
  template void gemm_nn(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, bool, T*, int64_t); \
  template void gemm_tn(int64_t, int64_t, int64_t, const T*, int64_t, const T*, int64_t, bool, T*, int64_t);
HSM_INSTANTIATE(float)
HSM_INSTANTIATE(double)
#undef HSM_INSTANTIATE

}  // namespace hsm::kernels
