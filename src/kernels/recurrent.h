#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/cell.h"
#include "kernels/gemm.h"
#include "kernels/row_groups.h"

namespace hsm::kernels {

/// A layer's parameters as torch lays them out, G = gate_count(cell): not owned.
template <class T>
struct LayerWeights {
  T* input = nullptr;        ///< [G·H, I]
  T* hidden = nullptr;       ///< [G·H, H]
  T* input_bias = nullptr;   ///< [G·H]
  T* hidden_bias = nullptr;  ///< [G·H]
};

/// What a layer reads: a row for each step and stream, or, with `groups`, one for each group of them.
template <class T>
struct LayerInput {
  const T* values = nullptr;          ///< [rows, I]
  const RowGroups* groups = nullptr;  ///< of the tokens step · streams + stream
};

/// One recurrent layer while it learns: a window forward, then backward through time.
///
/// Streams are independent but for the gradients by the weights, so each thread takes its own streams
/// through all steps without meeting the others. Every sum has an order of its own that depends neither on
/// the number of threads nor on how streams are shared out.
template <class T>
class RecurrentLayer {
 public:
  RecurrentLayer(Cell cell, int64_t input, int64_t hidden);

  /// x → output [steps, streams, H]. `state`: one row of state_width values (h, then c) a stream, rows
  /// `state_stride` apart; read, then replaced. `x` and the weights must stay for backward(); the output need
  /// not.
  void forward(const LayerWeights<const T>& weights, int64_t steps, int64_t streams, const LayerInput<T>& x,
               T* state, int64_t state_stride, T* output, ThreadPool& pool);

  /// From the gradient by the output: the gradients by x (as many rows as it has) and by the weights, all
  /// overwritten. None flows into the state before the window.
  void backward(const LayerWeights<const T>& weights, const T* output_gradient, T* x_gradient,
                const LayerWeights<T>& gradients, ThreadPool& pool);

  [[nodiscard]] int64_t input() const noexcept { return input_; }
  [[nodiscard]] int64_t hidden() const noexcept { return hidden_; }
  /// Layer outputs of the last forward(), [steps, streams, H].
  [[nodiscard]] const T* output() const noexcept { return hidden_states_.data() + streams_ * hidden_; }

 private:
  struct Streams {  // a range of streams that one thread takes
    int64_t first = 0;
    int64_t count = 0;
  };
  [[nodiscard]] Streams share(int64_t part, int64_t parts) const;
  [[nodiscard]] T* gates(int64_t step, int64_t stream);
  [[nodiscard]] int64_t input_rows() const;
  void pack_forward(const LayerWeights<const T>& weights, ThreadPool& pool);
  /// Where the input's products of forward() lie, and then their gradients: [input_rows(), G·H].
  [[nodiscard]] T* input_sums();
  /// Steps of a block when so many parts share the streams; 0 when the input's products are made for all
  /// steps at once instead.
  [[nodiscard]] int64_t block_steps(int64_t parts) const;
  void block_products(int64_t step, int64_t steps, Streams streams);
  void block_gradients(int64_t step, int64_t steps, Streams streams, T* x_gradient);
  void input_products(ThreadPool& pool);
  void input_gradients(T* x_gradient, ThreadPool& pool);
  void load_state(Streams streams, const T* state, int64_t stride);
  void store_state(Streams streams, T* state, int64_t stride) const;
  void forward_step(int64_t step, Streams streams, const LayerWeights<const T>& weights, T* scratch);
  void backward_steps(Streams streams, int64_t block, const T* output_gradient, T* x_gradient, T* scratch);
  void weight_gradients(const LayerWeights<T>& gradients, ThreadPool& pool);
  void hidden_weight_gradient(int64_t first, int64_t count, const LayerWeights<T>& gradients) const;
  void column_sums(const T* values, int64_t stride, int64_t rows, int64_t count, T* sums) const;

  Cell cell_;
  int64_t input_;
  int64_t hidden_;
  int64_t width_;  // G · H
  int64_t
      hidden_gates_;  // first rows of the hidden weights, whose sums have the same gradient as the input's
  int64_t steps_ = 0;
  int64_t streams_ = 0;
  LayerInput<T> x_;
  PackedMatrix<T> packed_input_;      // weights, forward and then backward
  PackedMatrix<T> packed_hidden_;     // weights, forward; backward, their first hidden_gates_ rows
  PackedMatrix<T> packed_candidate_;  // GRU, backward: the other rows
  PackedMatrix<T> packed_x_;
  PackedMatrix<T> packed_states_;
  std::vector<T> bias_;           // the LSTM's and the plain cells' two biases in one
  std::vector<T> gates_;          // [steps, streams, G·H]: gates, then their gradients (by the input's part)
  std::vector<T> grouped_;        // [groups, G·H]: input products, then sums of the groups' gradients
  std::vector<T> hidden_states_;  // [steps + 1, streams, H]: state before the window, then the outputs
  std::vector<T> cells_;          // LSTM: [steps + 1, streams, H]
  std::vector<T> candidates_;     // GRU: [steps, streams, H], the hidden part of n, then its gradient
  std::vector<T> scratch_;
  std::vector<T> ones_;
};

}  // namespace hsm::kernels
