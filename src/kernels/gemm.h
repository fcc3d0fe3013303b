#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace hsm::kernels {

// Matrix products on one thread, row-major, for float and double. Each output is summed in an order that
// depends on k alone: not on m, on n, on neighbours, or on how a product is cut into pieces along m and n.
// gemm_packed, gemm_packed_tn, gemm_nn and gemm_tn add in one order (see gemm_packed), gemm_nt and
// gemm_nt_rows in another, which depends on the instruction set. That (portable, AVX2 or AVX-512) is chosen
// once a process.

/// The second factor of many products, repacked in panels of columns.
template <class T>
class PackedMatrix {
 public:
  PackedMatrix() = default;
  PackedMatrix(const T* weights, int64_t n, int64_t k) { assign(weights, n, k, nullptr); }
  /// Packs other weights [n, k], of which products use the transpose, in the storage that is there when it is
  /// large enough; with the threads of `pool` unless null.
  void assign(const T* weights, int64_t n, int64_t k, ThreadPool* pool);
  /// The same from [k, n].
  void assign_transposed(const T* rows, int64_t n, int64_t k, ThreadPool* pool);
  [[nodiscard]] int64_t n() const noexcept { return n_; }
  [[nodiscard]] int64_t k() const noexcept { return k_; }
  [[nodiscard]] const T* data() const noexcept { return data_.data(); }
  [[nodiscard]] uint64_t bytes() const noexcept { return data_.size() * sizeof(T); }

 private:
  void resize(int64_t n, int64_t k);

  int64_t n_ = 0;
  int64_t k_ = 0;
  std::vector<T> data_;
};

/// C[m, n] = A[m, k]·B, plus bias[n] unless null, plus C when `accumulate`.
/// The start value (C or bias) comes first, then k ascending, one fused multiply-add after the other.
template <class T>
void gemm_packed(int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b, const T* bias, bool accumulate,
                 T* c, int64_t ldc);

/// Matrices of one shape: how many, and the values from each one's start to the next one's.
struct Blocks {
  int64_t count = 1;
  int64_t a_stride = 0;
  int64_t c_stride = 0;
};

/// The same for several A and C: B is read once for all of them.
template <class T>
void gemm_packed_blocks(const Blocks& blocks, int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b,
                        const T* bias, T* c, int64_t ldc);

/// C[m, n] = A[k, m]ᵀ·B, plus C when `accumulate`.
template <class T>
void gemm_packed_tn(int64_t m, const T* a, int64_t lda, const PackedMatrix<T>& b, bool accumulate, T* c,
                    int64_t ldc);

/// C[m, n] = A[m, k]·B[n, k]ᵀ, plus bias[n] unless null. B unpacked: for rows used once.
/// Partial sums over the vector's lanes run along k, are added in a fixed order, and then the bias.
template <class T>
void gemm_nt(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb, const T* bias,
             T* c, int64_t ldc);

/// The same bits as gemm_nt for rows of A given by pointer.
template <class T>
void gemm_nt_rows(int64_t m, int64_t n, int64_t k, const T* const* a_rows, const T* b, int64_t ldb,
                  const T* bias, T* c, int64_t ldc);

/// C[m, n] = A[m, k]·B[k, n], plus C when `accumulate`.
template <class T>
void gemm_nn(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
             bool accumulate, T* c, int64_t ldc);

/// C[m, n] = A[k, m]ᵀ·B[k, n], plus C when `accumulate`.
template <class T>
void gemm_tn(int64_t m, int64_t n, int64_t k, const T* a, int64_t lda, const T* b, int64_t ldb,
             bool accumulate, T* c, int64_t ldc);

/// "portable", "avx2" or "avx512": what this process runs. HSM_INSTRUCTION_SET in the environment lowers it.
const char* instruction_set();

}  // namespace hsm::kernels
