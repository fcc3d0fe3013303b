#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/leaf_factors.h"
#include "kernels/row_gradients.h"

namespace hsm::kernels {

/// Sizes of a two-level head and where its clusters lie. Root columns are the shortlist rows, then the
/// clusters: R = shortlist + clusters.
struct HeadShape {
  int64_t words = 0;                         ///< V, rows of the word matrix
  int64_t shortlist = 0;                     ///< K
  int64_t dim = 0;                           ///< D, hidden size
  std::span<const int64_t> cluster_offsets;  ///< C + 1 rows, first = K, last = V
  std::span<const int32_t> cluster_of_row;   ///< V entries, negative for the shortlist

  [[nodiscard]] int64_t clusters() const noexcept { return static_cast<int64_t>(cluster_offsets.size()) - 1; }
  [[nodiscard]] int64_t root() const noexcept { return shortlist + clusters(); }
};

/// Row-major weights, not owned.
template <class T>
struct HeadWeights {
  const T* word = nullptr;          ///< [V, D]
  const T* word_bias = nullptr;     ///< [V]
  const T* cluster = nullptr;       ///< [C, D]
  const T* cluster_bias = nullptr;  ///< [C]
};

/// Gradients of one pass; all are overwritten.
template <class T>
struct HeadGradients {
  T* hidden = nullptr;  ///< [N, D]
  RowGradients<T>* word =
      nullptr;  ///< D + 1 values a row: weights, then the bias; shortlist rows and hit clusters' rows
  T* cluster = nullptr;       ///< [C, D]
  T* cluster_bias = nullptr;  ///< [C]
  /// Null, or what takes the gradients of clusters where factors pay; `word` is then without their rows.
  LeafFactors<T>* leaves = nullptr;
};

/// Scratch that grows to what the largest pass needs and is reused. For N tokens with targets: the hidden
/// states and their gradient in sorted order (2·N·D values), 24 bytes a token, a block of logits at the root
/// or of a large cluster (4 MiB, or 32 tokens' when that is more), their hidden states and its weights packed
/// (the weights twice, each at most 32 MiB, none beyond), and for each thread the logits of a smaller cluster
/// (256 KiB, or 32 tokens').
template <class T>
class HeadWorkspace {
 public:
  struct Buffers;
  HeadWorkspace();
  ~HeadWorkspace();
  HeadWorkspace(HeadWorkspace&&) noexcept;
  HeadWorkspace& operator=(HeadWorkspace&&) noexcept;

  [[nodiscard]] uint64_t bytes() const noexcept;
  [[nodiscard]] Buffers& buffers() noexcept { return *buffers_; }

 private:
  std::unique_ptr<Buffers> buffers_;
};

/// −log P(target | hidden) of N tokens by the formula of docs/head.md:
///   root z_j = h·U_j + a_j;  log P = z_w − lse(z) for a shortlist word, else
///   z_c − lse(z) + l_w − lse(l over c),  l_v = h·W_v + b_v; nothing at level two for a cluster of one word.
/// `targets` are rows, negative for tokens without loss. Returns the sum of the losses, added in a fixed
/// order. With gradients: those of scale · Σ losses. No logits outlive a tile; the result does not depend on
/// the number of threads.
template <class T>
double head_loss(const HeadShape& shape, const HeadWeights<T>& weights, const T* hidden,
                 std::span<const int64_t> targets, T scale, const HeadGradients<T>* gradients,
                 HeadWorkspace<T>& workspace, ThreadPool& pool);

/// Rows of the word matrix that a pass over these targets reads and gives gradients to: the shortlist and the
/// clusters that are hit, without clusters of one word. Ascending.
std::vector<int64_t> touched_rows(const HeadShape& shape, std::span<const int64_t> targets);

}  // namespace hsm::kernels
