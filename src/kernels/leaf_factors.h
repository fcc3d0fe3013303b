#pragma once
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"

namespace hsm::kernels {

/// The gradient of a cluster's rows as two factors: by the weights Pᵀ·H, by the biases the column sums of P.
template <class T>
struct FactoredCluster {
  int64_t first_row = 0;  ///< of the word matrix
  int64_t rows = 0;
  int64_t tokens = 0;
  T* errors = nullptr;  ///< P [tokens, rows], rows `stride` apart: gradients by the logits
  int64_t stride = 0;
  const T* hidden = nullptr;  ///< H [tokens, dim]
};

/// Gradients of clusters that few tokens of a batch hit, left as factors: they take less memory than the
/// rows, and a step of plain SGD is an update of low rank done in place. Points into the workspace of the
/// pass that filled it, until the next pass.
template <class T>
struct LeafFactors {
  int64_t dim = 0;
  std::vector<FactoredCluster<T>> clusters;
  std::vector<T> errors;  ///< where the clusters' errors lie

  /// Whether factors pay: they are at most half as large as the gradient, and its norm costs no more than the
  /// gradient would.
  static bool pays(int64_t tokens, int64_t rows, int64_t dim) {
    return 2 * tokens <= rows && 2 * tokens <= dim;
  }
};

/// Σ of squares over the gradients by weights and biases: ⟨P·Pᵀ, H·Hᵀ + 1⟩, cluster by cluster.
template <class T>
double sum_of_squares(const LeafFactors<T>& factors, ThreadPool& pool);

/// weights += factor · Pᵀ·H and bias += factor · column sums of P, in the clusters' rows of [V, dim] and [V].
/// Multiplies the errors by `factor` on the way.
template <class T>
void add_gradients(LeafFactors<T>& factors, T factor, T* weights, T* bias, ThreadPool& pool);

}  // namespace hsm::kernels
