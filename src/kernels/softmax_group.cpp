#include "kernels/softmax_group.h"

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/vector_math.h"

namespace hsm::kernels {
namespace {

constexpr int64_t kLogitBytes = int64_t{4} << 20;
constexpr int64_t kPackedBytes = int64_t{32} << 20;
constexpr int64_t kSmallLogitBytes = int64_t{256} << 10;
constexpr int64_t kFewestTokens = 32;
// Sizes of the pieces that threads take, multiples of most row tiles of the products.
constexpr int64_t kLogitTokens = 56;
constexpr int64_t kHiddenTokens = 112;
constexpr int64_t kWeightRows = 84;

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}

template <class T>
void reserve(std::vector<T>& buffer, int64_t size) {
  if (static_cast<int64_t>(buffer.size()) < size) buffer.resize(static_cast<size_t>(size));
}

/// [first, last) of piece `index` when `count` things are cut in `pieces` of nearly equal size.
struct Range {
  int64_t first;
  int64_t last;
  [[nodiscard]] int64_t size() const { return last - first; }
};
Range piece(int64_t count, int64_t pieces, int64_t index) {
  return {index * count / pieces, (index + 1) * count / pieces};
}

/// Values between two tokens' logits: vectors start aligned, and not all tokens in the same cache sets.
template <class T>
int64_t logit_stride(int64_t columns) {
  constexpr int64_t kLine = 64 / sizeof(T);
  const int64_t lines = divide_up(columns, kLine);
  return (lines % 16 == 0 ? lines + 1 : lines) * kLine;
}

template <class T>
int64_t tokens_that_fit(const SoftmaxGroup<T>& group, int64_t bytes) {
  const int64_t row = logit_stride<T>(group.columns()) * static_cast<int64_t>(sizeof(T));
  return std::min(group.tokens, std::max(kFewestTokens, bytes / row));
}

/// Logits to losses and, when asked, to scale · (p − onehot).
template <class T>
void finish_logits(const SoftmaxGroup<T>& group, Range tokens, T* logits, int64_t stride) {
  const int64_t columns = group.columns();
  for (int64_t t = tokens.first; t < tokens.last; ++t, logits += stride) {
    const int64_t column = group.column[t];
    const T hit = logits[column];
    T lse;
    if (group.hidden_gradient != nullptr) {
      lse = softmax(logits, columns, group.scale);
      logits[column] -= group.scale;
    } else {
      lse = log_sum_exp(logits, columns);
    }
    group.losses[t] += static_cast<double>(lse - hit);
  }
}

/// Gradient of tokens [first, last) of the hidden states; `errors` is the first one's row of scale · (p −
/// onehot), `packed` null or the segments' weights.
template <class T>
void hidden_gradient(const SoftmaxGroup<T>& group, Range tokens, const T* errors, int64_t stride,
                     const std::array<PackedMatrix<T>, 2>* packed) {
  bool adds = group.adds;
  T* to = group.hidden_gradient + tokens.first * group.dim;
  for (size_t s = 0; s < group.segments.size(); ++s) {
    const SoftmaxSegment<T>& segment = group.segments[s];
    if (segment.rows == 0) continue;
    if (packed != nullptr) {
      gemm_packed<T>(tokens.size(), errors, stride, (*packed)[s], nullptr, adds, to, group.dim);
    } else {
      gemm_nn(tokens.size(), group.dim, segment.rows, errors, stride, segment.weights, group.dim, adds, to,
              group.dim);
    }
    adds = true;
    errors += segment.rows;
  }
}

/// Gradient of `rows` of a segment from `tokens`; `errors` is their matrix at the segment's first column,
/// `packed` null or the tokens' hidden states.
template <class T>
void weight_gradient(const SoftmaxGroup<T>& group, const SoftmaxSegment<T>& segment, Range rows, Range tokens,
                     const T* errors, int64_t stride, const PackedMatrix<T>* packed) {
  const bool adds = tokens.first > 0;
  errors += rows.first;
  T* to = segment.gradient + rows.first * segment.gradient_stride;
  if (packed != nullptr) {
    gemm_packed_tn(rows.size(), errors, stride, *packed, adds, to, segment.gradient_stride);
  } else {
    gemm_tn(rows.size(), group.dim, tokens.size(), errors, stride, group.hidden + tokens.first * group.dim,
            group.dim, adds, to, segment.gradient_stride);
  }
  T* bias = segment.bias_gradient + rows.first * segment.bias_stride;
  T sums[kWeightRows];
  for (int64_t r = 0; r < rows.size(); ++r) sums[r] = adds ? bias[r * segment.bias_stride] : T{0};
  for (int64_t t = 0; t < tokens.size(); ++t, errors += stride) {
    for (int64_t r = 0; r < rows.size(); ++r) sums[r] += errors[r];
  }
  for (int64_t r = 0; r < rows.size(); ++r) bias[r * segment.bias_stride] = sums[r];
}

/// The products of a large group: weights packed once for all tiles of tokens, or, when that would take too
/// much memory, read where they lie.
template <class T>
class GroupProducts {
 public:
  GroupProducts(const SoftmaxGroup<T>& group, GroupBuffers<T>& buffers, ThreadPool& pool)
      : group_(group),
        buffers_(buffers),
        pool_(pool),
        packs_(group.columns() * group.dim * static_cast<int64_t>(sizeof(T)) <= kPackedBytes) {
    if (!packs_) return;
    for (size_t s = 0; s < group.segments.size(); ++s) {
      const SoftmaxSegment<T>& segment = group.segments[s];
      buffers.forward[s].assign(segment.weights, segment.rows, group.dim, &pool);
      if (group.hidden_gradient != nullptr)
        buffers.backward[s].assign_transposed(segment.weights, group.dim, segment.rows, &pool);
    }
  }

  void logits(Range tokens, T* logits, int64_t stride) const {
    const T* hidden = group_.hidden + tokens.first * group_.dim;
    for (size_t s = 0; s < group_.segments.size(); ++s) {
      const SoftmaxSegment<T>& segment = group_.segments[s];
      if (segment.rows == 0) continue;
      if (packs_) {
        gemm_packed(tokens.size(), hidden, group_.dim, buffers_.forward[s], segment.bias, false, logits,
                    stride);
      } else {
        gemm_nt(tokens.size(), segment.rows, group_.dim, hidden, group_.dim, segment.weights, group_.dim,
                segment.bias, logits, stride);
      }
      logits += segment.rows;
    }
  }

  /// Both gradients from one block of tokens: pieces of tokens for the hidden states, then pieces of rows for
  /// the weights, each of which sees all tokens in order.
  void gradients(Range tokens, const T* errors, int64_t stride) {
    buffers_.hidden.assign_transposed(group_.hidden + tokens.first * group_.dim, group_.dim, tokens.size(),
                                      &pool_);
    const int64_t hidden_pieces = divide_up(tokens.size(), kHiddenTokens);
    const int64_t first_pieces = divide_up(group_.segments[0].rows, kWeightRows);
    const int64_t second_pieces = divide_up(group_.segments[1].rows, kWeightRows);
    pool_.run(hidden_pieces + first_pieces + second_pieces, [&](int64_t item, int) {
      if (item < hidden_pieces) {
        const Range part = piece(tokens.size(), hidden_pieces, item);
        hidden_gradient(group_, {tokens.first + part.first, tokens.first + part.last},
                        errors + part.first * stride, stride, packs_ ? &buffers_.backward : nullptr);
        return;
      }
      item -= hidden_pieces;
      const size_t s = item < first_pieces ? 0 : 1;
      const SoftmaxSegment<T>& segment = group_.segments[s];
      const Range rows = s == 0 ? piece(segment.rows, first_pieces, item)
                                : piece(segment.rows, second_pieces, item - first_pieces);
      weight_gradient(group_, segment, rows, tokens, errors + (s == 0 ? 0 : group_.segments[0].rows), stride,
                      &buffers_.hidden);
    });
  }

 private:
  const SoftmaxGroup<T>& group_;
  GroupBuffers<T>& buffers_;
  ThreadPool& pool_;
  bool packs_;
};

}  // namespace

template <class T>
uint64_t GroupBuffers<T>::bytes() const {
  uint64_t bytes = logits.capacity() * sizeof(T) + hidden.bytes();
  for (size_t s = 0; s < forward.size(); ++s) bytes += forward[s].bytes() + backward[s].bytes();
  return bytes;
}

template <class T>
void run_group(const SoftmaxGroup<T>& group, GroupBuffers<T>& buffers, ThreadPool& pool) {
  if (group.tokens == 0) return;
  GroupProducts<T> products(group, buffers, pool);
  const int64_t stride = logit_stride<T>(group.columns());
  const int64_t blocks = divide_up(group.tokens, tokens_that_fit(group, kLogitBytes));
  reserve(buffers.logits, divide_up(group.tokens, blocks) * stride);
  T* const logits = buffers.logits.data();
  for (int64_t b = 0; b < blocks; ++b) {
    const Range tokens = piece(group.tokens, blocks, b);
    const int64_t tiles = divide_up(tokens.size(), kLogitTokens);
    pool.run(tiles, [&](int64_t tile, int) {
      const Range part = piece(tokens.size(), tiles, tile);
      const Range absolute{tokens.first + part.first, tokens.first + part.last};
      products.logits(absolute, logits + part.first * stride, stride);
      finish_logits(group, absolute, logits + part.first * stride, stride);
    });
    if (group.hidden_gradient != nullptr) products.gradients(tokens, logits, stride);
  }
}

template <class T>
int64_t small_group_scratch(const SoftmaxGroup<T>& group) {
  return tokens_that_fit(group, kSmallLogitBytes) * logit_stride<T>(group.columns());
}

template <class T>
void run_small_group(const SoftmaxGroup<T>& group, T* logits) {
  const SoftmaxSegment<T>& segment = group.segments[0];
  const int64_t stride = logit_stride<T>(segment.rows);
  const int64_t blocks = divide_up(group.tokens, tokens_that_fit(group, kSmallLogitBytes));
  for (int64_t b = 0; b < blocks; ++b) {
    const Range tokens = piece(group.tokens, blocks, b);
    gemm_nt(tokens.size(), segment.rows, group.dim, group.hidden + tokens.first * group.dim, group.dim,
            segment.weights, group.dim, segment.bias, logits, stride);
    finish_logits(group, tokens, logits, stride);
    if (group.hidden_gradient == nullptr) continue;
    hidden_gradient<T>(group, tokens, logits, stride, nullptr);
    const int64_t pieces = divide_up(segment.rows, kWeightRows);
    for (int64_t p = 0; p < pieces; ++p) {
      weight_gradient<T>(group, segment, piece(segment.rows, pieces, p), tokens, logits, stride, nullptr);
    }
  }
}

template <class T>
int64_t error_stride(const SoftmaxGroup<T>& group) {
  return logit_stride<T>(group.columns());
}

template <class T>
void run_factored_group(const SoftmaxGroup<T>& group, T* errors) {
  const SoftmaxSegment<T>& segment = group.segments[0];
  const int64_t stride = error_stride(group);
  const Range tokens{0, group.tokens};
  gemm_nt(group.tokens, segment.rows, group.dim, group.hidden, group.dim, segment.weights, group.dim,
          segment.bias, errors, stride);
  finish_logits(group, tokens, errors, stride);
  hidden_gradient<T>(group, tokens, errors, stride, nullptr);
}

template struct GroupBuffers<float>;
template struct GroupBuffers<double>;
template void run_group(const SoftmaxGroup<float>&, GroupBuffers<float>&, ThreadPool&);
template void run_group(const SoftmaxGroup<double>&, GroupBuffers<double>&, ThreadPool&);
template void run_small_group(const SoftmaxGroup<float>&, float*);
template void run_small_group(const SoftmaxGroup<double>&, double*);
template void run_factored_group(const SoftmaxGroup<float>&, float*);
template void run_factored_group(const SoftmaxGroup<double>&, double*);
template int64_t error_stride(const SoftmaxGroup<float>&);
template int64_t error_stride(const SoftmaxGroup<double>&);
template int64_t small_group_scratch(const SoftmaxGroup<float>&);
template int64_t small_group_scratch(const SoftmaxGroup<double>&);

}  // namespace hsm::kernels
