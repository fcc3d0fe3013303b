#pragma once
#include <array>
#include <cstdint>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/gemm.h"

namespace hsm::kernels {

/// Rows of one matrix that are columns of a softmax, and where their gradients go.
template <class T>
struct SoftmaxSegment {
  const T* weights = nullptr;  ///< [rows, dim]
  const T* bias = nullptr;     ///< [rows]
  int64_t rows = 0;
  T* gradient = nullptr;  ///< row r at gradient + r · gradient_stride; null: no gradients
  int64_t gradient_stride = 0;
  T* bias_gradient = nullptr;
  int64_t bias_stride = 0;
};

/// One softmax for many tokens: the root for all of them, or a cluster for its own. The columns are those of
/// the first segment, then of the second. Σ over tokens of log Σ exp z − z[column] is added to the losses;
/// gradients are those of scale · Σ.
template <class T>
struct SoftmaxGroup {
  int64_t tokens = 0;
  int64_t dim = 0;
  const T* hidden = nullptr;        ///< [tokens, dim]
  const int64_t* column = nullptr;  ///< [tokens]
  double* losses = nullptr;         ///< [tokens], added to
  T* hidden_gradient = nullptr;     ///< [tokens, dim]; null: no gradients
  bool adds = false;                ///< the hidden gradient is added to, else overwritten
  T scale = 1;
  std::array<SoftmaxSegment<T>, 2> segments = {};  ///< overwritten gradients

  [[nodiscard]] int64_t columns() const { return segments[0].rows + segments[1].rows; }
  /// Multiply-adds of a forward pass, the measure of work.
  [[nodiscard]] int64_t work() const { return tokens * columns() * dim; }
};

/// Tiles of logits and packed factors of run_group.
template <class T>
struct GroupBuffers {
  std::vector<T> logits;
  std::array<PackedMatrix<T>, 2> forward;   ///< the segments' weights, for the logits
  std::array<PackedMatrix<T>, 2> backward;  ///< and for the gradient of the hidden states
  PackedMatrix<T> hidden;                   ///< a block of hidden states, for the gradient of the weights

  [[nodiscard]] uint64_t bytes() const;
};

/// A large group with all threads of the pool. Logits are held for as many tokens as fit in 4 MiB (32 tokens
/// when even those do not), weights packed when they take at most 32 MiB, once for each direction.
template <class T>
void run_group(const SoftmaxGroup<T>& group, GroupBuffers<T>& buffers, ThreadPool& pool);

/// A small group on the calling thread. `logits`: small_group_scratch values.
template <class T>
void run_small_group(const SoftmaxGroup<T>& group, T* logits);
/// The same, with what would be the gradient of the weights left as its factors: `errors` [tokens,
/// error_stride] gets scale · (p − onehot), the other is the hidden states.
template <class T>
void run_factored_group(const SoftmaxGroup<T>& group, T* errors);
template <class T>
int64_t error_stride(const SoftmaxGroup<T>& group);
template <class T>
int64_t small_group_scratch(const SoftmaxGroup<T>& group);

}  // namespace hsm::kernels
