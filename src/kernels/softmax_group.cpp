#include "kernels/softmax_group.h"

#include <algorithm>

#include "kernels/gemm.h"
#include "kernels/gemm_kernels.h"
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
constexpr int64_t kPackRows = 256;

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
/// onehot).
template <class T>
void hidden_gradient(const SoftmaxGroup<T>& group, Range tokens, const T* errors, int64_t stride) {
  bool adds = group.adds;
  T* to = group.hidden_gradient + tokens.first * group.dim;
  for (const SoftmaxSegment<T>& segment : group.segments) {
    if (segment.rows == 0) continue;
    gemm_nn(tokens.size(), group.dim, segment.rows, errors, stride, segment.weights, group.dim, adds, to,
            group.dim);
    adds = true;
    errors += segment.rows;
  }
}

/// Gradient of `rows` of a segment from `tokens`; `errors` is their matrix at the segment's first column.
template <class T>
void weight_gradient(const SoftmaxGroup<T>& group, const SoftmaxSegment<T>& segment, Range rows, Range tokens,
                     const T* errors, int64_t stride) {
  const bool adds = tokens.first > 0;
  errors += rows.first;
  gemm_tn(rows.size(), group.dim, tokens.size(), errors, stride, group.hidden + tokens.first * group.dim,
          group.dim, adds, segment.gradient + rows.first * segment.gradient_stride, segment.gradient_stride);
  T* bias = segment.bias_gradient + rows.first * segment.bias_stride;
  T sums[kWeightRows];
  for (int64_t r = 0; r < rows.size(); ++r) sums[r] = adds ? bias[r * segment.bias_stride] : T{0};
  for (int64_t t = 0; t < tokens.size(); ++t, errors += stride) {
    for (int64_t r = 0; r < rows.size(); ++r) sums[r] += errors[r];
  }
  for (int64_t r = 0; r < rows.size(); ++r) bias[r * segment.bias_stride] = sums[r];
}

/// The products of a large group's logits: weights packed once for all tiles of tokens, or, when that would
/// take too much memory, read where they lie.
template <class T>
class LogitProducts {
 public:
  LogitProducts(const SoftmaxGroup<T>& group, std::vector<T>& packed, ThreadPool& pool) : group_(group) {
    int64_t size = 0;
    for (size_t s = 0; s < 2; ++s) {
      start_[s] = size;
      size += packed_size(group.segments[s].rows, group.dim, kernels_.panel);
    }
    if (size * static_cast<int64_t>(sizeof(T)) > kPackedBytes) return;
    reserve(packed, size);
    packed_ = packed.data();
    const int64_t step = divide_up(kPackRows, kernels_.panel) * kernels_.panel;
    for (size_t s = 0; s < 2; ++s) {
      const SoftmaxSegment<T>& segment = group.segments[s];
      T* to = packed_ + start_[s];
      pool.run(divide_up(segment.rows, step), [&](int64_t item, int) {
        const int64_t first = item * step;
        pack(segment.weights + first * group_.dim, std::min(step, segment.rows - first), group_.dim,
             group_.dim, kernels_.panel, to + first * group_.dim);
      });
    }
  }

  void run(Range tokens, T* logits, int64_t stride) const {
    const T* hidden = group_.hidden + tokens.first * group_.dim;
    for (size_t s = 0; s < 2; ++s) {
      const SoftmaxSegment<T>& segment = group_.segments[s];
      if (segment.rows == 0) continue;
      if (packed_ == nullptr) {
        gemm_nt(tokens.size(), segment.rows, group_.dim, hidden, group_.dim, segment.weights, group_.dim,
                segment.bias, logits, stride);
      } else {
        kernels_.product({.m = tokens.size(),
                          .n = segment.rows,
                          .k = group_.dim,
                          .a = hidden,
                          .a_row = group_.dim,
                          .a_k = 1,
                          .b = packed_ + start_[s],
                          .b_k = kernels_.panel,
                          .b_panel = kernels_.panel * group_.dim,
                          .packed = true,
                          .bias = segment.bias,
                          .c = logits,
                          .ldc = stride});
      }
      logits += segment.rows;
    }
  }

 private:
  const GemmKernels<T>& kernels_ = active_gemm_kernels<T>();
  const SoftmaxGroup<T>& group_;
  T* packed_ = nullptr;
  int64_t start_[2] = {};
};

/// Both gradients from one block of tokens: pieces of tokens for the hidden states, then pieces of rows for
/// the weights, each of which sees all tokens in order.
template <class T>
void run_gradients(const SoftmaxGroup<T>& group, Range tokens, const T* errors, int64_t stride,
                   ThreadPool& pool) {
  const int64_t hidden_pieces = divide_up(tokens.size(), kHiddenTokens);
  const int64_t first_pieces = divide_up(group.segments[0].rows, kWeightRows);
  const int64_t second_pieces = divide_up(group.segments[1].rows, kWeightRows);
  pool.run(hidden_pieces + first_pieces + second_pieces, [&](int64_t item, int) {
    if (item < hidden_pieces) {
      const Range part = piece(tokens.size(), hidden_pieces, item);
      hidden_gradient(group, {tokens.first + part.first, tokens.first + part.last},
                      errors + part.first * stride, stride);
      return;
    }
    item -= hidden_pieces;
    const size_t s = item < first_pieces ? 0 : 1;
    const SoftmaxSegment<T>& segment = group.segments[s];
    const Range rows = s == 0 ? piece(segment.rows, first_pieces, item)
                              : piece(segment.rows, second_pieces, item - first_pieces);
    weight_gradient(group, segment, rows, tokens, errors + (s == 0 ? 0 : group.segments[0].rows), stride);
  });
}

}  // namespace

template <class T>
void run_group(const SoftmaxGroup<T>& group, GroupBuffers<T>& buffers, ThreadPool& pool) {
  if (group.tokens == 0) return;
  const LogitProducts<T> products(group, buffers.packed, pool);
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
      products.run(absolute, logits + part.first * stride, stride);
      finish_logits(group, absolute, logits + part.first * stride, stride);
    });
    if (group.hidden_gradient != nullptr) run_gradients(group, tokens, logits, stride, pool);
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
    hidden_gradient(group, tokens, logits, stride);
    const int64_t pieces = divide_up(segment.rows, kWeightRows);
    for (int64_t p = 0; p < pieces; ++p) {
      weight_gradient(group, segment, piece(segment.rows, pieces, p), tokens, logits, stride);
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
  hidden_gradient(group, tokens, errors, stride);
}

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
