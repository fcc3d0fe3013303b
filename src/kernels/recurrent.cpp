#include "kernels/recurrent.h"

#include <algorithm>

#include "kernels/cell_pointwise.h"

namespace hsm::kernels {
namespace {

constexpr int64_t kRowTile = 28;     // rows of a tall product that one item computes
constexpr int64_t kWeightTile = 28;  // rows of a weight gradient that one item computes
// Steps whose input products a thread makes at a time, for so many streams that their products fill the
// processor: then gates are still in the second cache when their step comes.
constexpr int64_t kBlockSteps = 8;
constexpr int64_t kBlockBytes = int64_t{512} << 10;
constexpr int64_t kBlockStreams = 7;

int64_t tiles(int64_t count, int64_t tile) {
  return (count + tile - 1) / tile;
}

}  // namespace

template <class T>
RecurrentLayer<T>::RecurrentLayer(Cell cell, int64_t input, int64_t hidden)
    : cell_(cell),
      input_(input),
      hidden_(hidden),
      width_(gate_count(cell) * hidden),
      hidden_gates_(cell == Cell::gru ? 2 * hidden : width_) {}

template <class T>
typename RecurrentLayer<T>::Streams RecurrentLayer<T>::share(int64_t part, int64_t parts) const {
  const int64_t first = streams_ * part / parts;
  return {first, streams_ * (part + 1) / parts - first};
}

template <class T>
T* RecurrentLayer<T>::gates(int64_t step, int64_t stream) {
  return gates_.data() + (step * streams_ + stream) * width_;
}

template <class T>
int64_t RecurrentLayer<T>::input_rows() const {
  return x_.groups == nullptr ? steps_ * streams_ : x_.groups->size();
}

template <class T>
T* RecurrentLayer<T>::input_sums() {
  return x_.groups == nullptr ? gates_.data() : grouped_.data();
}

template <class T>
void RecurrentLayer<T>::forward(const LayerWeights<const T>& weights, int64_t steps, int64_t streams,
                                const LayerInput<T>& x, T* state, int64_t state_stride, T* output,
                                ThreadPool& pool) {
  steps_ = steps;
  streams_ = streams;
  x_ = x;
  const int64_t rows = steps * streams;
  gates_.resize(static_cast<size_t>(rows * width_));
  if (x.groups != nullptr) grouped_.resize(static_cast<size_t>(input_rows() * width_));
  hidden_states_.resize(static_cast<size_t>((steps + 1) * streams * hidden_));
  if (cell_ == Cell::lstm) cells_.resize(hidden_states_.size());
  if (cell_ == Cell::gru) candidates_.resize(static_cast<size_t>(rows * hidden_));
  const int64_t scratch_row = std::max(width_, 2 * hidden_);
  scratch_.resize(static_cast<size_t>(streams * scratch_row));

  pack_forward(weights, pool);
  const int64_t parts = std::min<int64_t>(pool.threads(), streams);
  const int64_t block = block_steps(parts);
  if (block == 0) input_products(pool);
  pool.run(parts, [&](int64_t part, int) {
    const Streams mine = share(part, parts);
    load_state(mine, state, state_stride);
    for (int64_t step = 0; step < steps; ++step) {
      if (block > 0 && step % block == 0) block_products(step, std::min(block, steps - step), mine);
      forward_step(step, mine, weights, scratch_.data() + mine.first * scratch_row);
      const int64_t from = (step * streams + mine.first) * hidden_;
      std::copy_n(this->output() + from, mine.count * hidden_, output + from);
    }
    store_state(mine, state, state_stride);
  });
}

template <class T>
void RecurrentLayer<T>::pack_forward(const LayerWeights<const T>& weights, ThreadPool& pool) {
  packed_input_.assign(weights.input, width_, input_, &pool);
  packed_hidden_.assign(weights.hidden, width_, hidden_, &pool);
  // The GRU's candidate needs its hidden bias apart, inside the product with r.
  bias_.assign(weights.input_bias, weights.input_bias + width_);
  if (cell_ == Cell::gru) return;
  for (int64_t i = 0; i < width_; ++i) bias_[static_cast<size_t>(i)] += weights.hidden_bias[i];
}

template <class T>
int64_t RecurrentLayer<T>::block_steps(int64_t parts) const {
  const int64_t streams = streams_ / parts;
  if (x_.groups != nullptr || streams < kBlockStreams) return 0;
  return std::clamp<int64_t>(kBlockBytes / (static_cast<int64_t>(sizeof(T)) * streams * width_), 1,
                             kBlockSteps);
}

template <class T>
void RecurrentLayer<T>::block_products(int64_t step, int64_t steps, Streams mine) {
  const Blocks blocks{.count = steps, .a_stride = streams_ * input_, .c_stride = streams_ * width_};
  gemm_packed_blocks(blocks, mine.count, x_.values + (step * streams_ + mine.first) * input_, input_,
                     packed_input_, bias_.data(), gates(step, mine.first), width_);
}

template <class T>
void RecurrentLayer<T>::block_gradients(int64_t step, int64_t steps, Streams mine, T* x_gradient) {
  const Blocks blocks{.count = steps, .a_stride = streams_ * width_, .c_stride = streams_ * input_};
  gemm_packed_blocks<T>(blocks, mine.count, gates(step, mine.first), width_, packed_input_, nullptr,
                        x_gradient + (step * streams_ + mine.first) * input_, input_);
}

template <class T>
void RecurrentLayer<T>::input_products(ThreadPool& pool) {
  const int64_t rows = input_rows();
  pool.run(tiles(rows, kRowTile), [&](int64_t tile, int) {
    const int64_t first = tile * kRowTile;
    gemm_packed(std::min(kRowTile, rows - first), x_.values + first * input_, input_, packed_input_,
                bias_.data(), false, input_sums() + first * width_, width_);
  });
}

template <class T>
void RecurrentLayer<T>::input_gradients(T* x_gradient, ThreadPool& pool) {
  const int64_t rows = input_rows();
  pool.run(tiles(rows, kRowTile), [&](int64_t tile, int) {
    const int64_t first = tile * kRowTile;
    gemm_packed<T>(std::min(kRowTile, rows - first), input_sums() + first * width_, width_, packed_input_,
                   nullptr, false, x_gradient + first * input_, input_);
  });
}

template <class T>
void RecurrentLayer<T>::load_state(Streams mine, const T* state, int64_t stride) {
  for (int64_t s = mine.first; s < mine.first + mine.count; ++s) {
    const T* before = state + s * stride;
    std::copy_n(before, hidden_, hidden_states_.data() + s * hidden_);
    if (cell_ == Cell::lstm) std::copy_n(before + hidden_, hidden_, cells_.data() + s * hidden_);
  }
}

template <class T>
void RecurrentLayer<T>::store_state(Streams mine, T* state, int64_t stride) const {
  for (int64_t s = mine.first; s < mine.first + mine.count; ++s) {
    const int64_t last = (steps_ * streams_ + s) * hidden_;
    T* after = state + s * stride;
    std::copy_n(hidden_states_.data() + last, hidden_, after);
    if (cell_ == Cell::lstm) std::copy_n(cells_.data() + last, hidden_, after + hidden_);
  }
}

template <class T>
void RecurrentLayer<T>::forward_step(int64_t step, Streams mine, const LayerWeights<const T>& weights,
                                     T* scratch) {
  const T* before = hidden_states_.data() + (step * streams_ + mine.first) * hidden_;
  if (x_.groups != nullptr) {
    for (int64_t i = 0; i < mine.count; ++i) {
      const auto token = static_cast<size_t>(step * streams_ + mine.first + i);
      std::copy_n(grouped_.data() + x_.groups->place[token] * width_, width_, gates(step, mine.first + i));
    }
  }
  T* sums = gates(step, mine.first);
  if (cell_ == Cell::gru) {
    sums = scratch;
    gemm_packed(mine.count, before, hidden_, packed_hidden_, weights.hidden_bias, false, sums, width_);
  } else {
    gemm_packed<T>(mine.count, before, hidden_, packed_hidden_, nullptr, true, sums, width_);
  }
  for (int64_t i = 0; i < mine.count; ++i) {
    const int64_t row = (step * streams_ + mine.first + i) * hidden_;
    const int64_t next = row + streams_ * hidden_;
    T* own = gates(step, mine.first + i);
    T* h = hidden_states_.data() + next;
    switch (cell_) {
      case Cell::lstm:
        lstm_forward(hidden_, own, cells_.data() + row, cells_.data() + next, h);
        break;
      case Cell::gru:
        gru_forward(hidden_, own, sums + i * width_, candidates_.data() + row, before + i * hidden_, h);
        break;
      default:
        plain_forward(cell_, hidden_, own, h);
    }
  }
}

template <class T>
void RecurrentLayer<T>::backward(const LayerWeights<const T>& weights, const T* output_gradient,
                                 T* x_gradient, const LayerWeights<T>& gradients, ThreadPool& pool) {
  packed_input_.assign_transposed(weights.input, input_, width_, &pool);
  packed_hidden_.assign_transposed(weights.hidden, hidden_, hidden_gates_, &pool);
  if (cell_ == Cell::gru) {
    packed_candidate_.assign_transposed(weights.hidden + hidden_gates_ * hidden_, hidden_, hidden_, &pool);
  }
  const int64_t parts = std::min<int64_t>(pool.threads(), streams_);
  const int64_t block = block_steps(parts);
  const int64_t scratch_row = static_cast<int64_t>(scratch_.size()) / streams_;
  pool.run(parts, [&](int64_t part, int) {
    const Streams mine = share(part, parts);
    backward_steps(mine, block, output_gradient, x_gradient, scratch_.data() + mine.first * scratch_row);
  });
  if (x_.groups != nullptr) sum_groups<T>(*x_.groups, {}, gates_.data(), width_, grouped_.data(), pool);
  if (block == 0) input_gradients(x_gradient, pool);
  weight_gradients(gradients, pool);
}

template <class T>
void RecurrentLayer<T>::backward_steps(Streams mine, int64_t block, const T* output_gradient, T* x_gradient,
                                       T* scratch) {
  // Gradients by h and c that come from the step after.
  T* from_after = scratch;
  T* dc = from_after + mine.count * hidden_;
  std::fill_n(from_after, 2 * mine.count * hidden_, T{0});
  for (int64_t step = steps_ - 1; step >= 0; --step) {
    for (int64_t i = 0; i < mine.count; ++i) {
      const int64_t row = (step * streams_ + mine.first + i) * hidden_;
      const int64_t next = row + streams_ * hidden_;
      T* own = gates(step, mine.first + i);
      T* after = from_after + i * hidden_;
      const OutputGradient<T> dh{output_gradient + row, after};
      switch (cell_) {
        case Cell::lstm:
          lstm_backward(hidden_, own, cells_.data() + row, cells_.data() + next, dh, dc + i * hidden_);
          break;
        case Cell::gru:
          gru_backward(hidden_, own, candidates_.data() + row, hidden_states_.data() + row, dh, after);
          break;
        default:
          plain_backward(cell_, hidden_, hidden_states_.data() + next, dh, own);
      }
    }
    if (block > 0 && step % block == 0)
      block_gradients(step, std::min(block, steps_ - step), mine, x_gradient);
    if (step == 0) break;
    gemm_packed<T>(mine.count, gates(step, mine.first), width_, packed_hidden_, nullptr, cell_ == Cell::gru,
                   from_after, hidden_);
    if (cell_ == Cell::gru) {
      gemm_packed<T>(mine.count, candidates_.data() + (step * streams_ + mine.first) * hidden_, hidden_,
                     packed_candidate_, nullptr, true, from_after, hidden_);
    }
  }
}

template <class T>
void RecurrentLayer<T>::weight_gradients(const LayerWeights<T>& gradients, ThreadPool& pool) {
  const int64_t rows = input_rows();
  const T* sums = input_sums();
  packed_x_.assign_transposed(x_.values, input_, rows, &pool);
  packed_states_.assign_transposed(hidden_states_.data(), hidden_, steps_ * streams_, &pool);
  ones_.assign(static_cast<size_t>(steps_ * streams_), T{1});
  pool.run(tiles(width_, kWeightTile), [&](int64_t tile, int) {
    const int64_t first = tile * kWeightTile;
    const int64_t count = std::min(kWeightTile, width_ - first);
    hidden_weight_gradient(first, count, gradients);
    gemm_packed_tn(count, sums + first, width_, packed_x_, false, gradients.input + first * input_, input_);
    column_sums(sums + first, width_, rows, count, gradients.input_bias + first);
  });
}

template <class T>
void RecurrentLayer<T>::hidden_weight_gradient(int64_t first, int64_t count,
                                               const LayerWeights<T>& gradients) const {
  const auto part = [&](const T* sums, int64_t stride, int64_t at, int64_t n) {
    if (n == 0) return;
    gemm_packed_tn(n, sums, stride, packed_states_, false, gradients.hidden + at * hidden_, hidden_);
    column_sums(sums, stride, steps_ * streams_, n, gradients.hidden_bias + at);
  };
  const int64_t last = first + count;
  const int64_t middle = std::clamp(hidden_gates_, first, last);
  part(gates_.data() + first, width_, first, middle - first);
  if (middle < last) part(candidates_.data() + (middle - hidden_gates_), hidden_, middle, last - middle);
}

/// sums[n] = Σ over rows of values [rows, n], rows `stride` apart.
template <class T>
void RecurrentLayer<T>::column_sums(const T* values, int64_t stride, int64_t rows, int64_t count,
                                    T* sums) const {
  gemm_nn(1, count, rows, ones_.data(), rows, values, stride, false, sums, count);
}

template class RecurrentLayer<float>;
template class RecurrentLayer<double>;

}  // namespace hsm::kernels
