#include "kernels/recurrent.h"

#include <algorithm>

#include "kernels/cell_pointwise.h"

namespace hsm::kernels {
namespace {

constexpr int64_t kRowTile = 64;     // rows of a tall product that one item computes
constexpr int64_t kWeightTile = 64;  // rows of a weight gradient that one item computes

int64_t tiles(int64_t count, int64_t tile) {
  return (count + tile - 1) / tile;
}

// out[n] = Σ over rows of values [rows, n], rows `stride` apart, ascending.
template <class T>
void column_sums(int64_t rows, int64_t n, const T* values, int64_t stride, T* out) {
  std::fill(out, out + n, T{0});
  for (int64_t row = 0; row < rows; ++row) {
    for (int64_t column = 0; column < n; ++column) out[column] += values[row * stride + column];
  }
}

}  // namespace

template <class T>
RecurrentLayer<T>::RecurrentLayer(Cell cell, int64_t input, int64_t hidden)
    : cell_(cell), input_(input), hidden_(hidden), width_(gate_count(cell) * hidden) {}

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
void RecurrentLayer<T>::forward(const LayerWeights<const T>& weights, int64_t steps, int64_t streams,
                                const T* x, T* state, int64_t state_stride, T* output, ThreadPool& pool) {
  steps_ = steps;
  streams_ = streams;
  x_ = x;
  const int64_t rows = steps * streams;
  packed_input_.assign(weights.input, width_, input_);
  packed_hidden_.assign(weights.hidden, width_, hidden_);
  // The GRU's candidate needs its hidden bias apart, inside the product with r.
  bias_.assign(weights.input_bias, weights.input_bias + width_);
  if (cell_ != Cell::gru) {
    for (int64_t i = 0; i < width_; ++i) bias_[static_cast<size_t>(i)] += weights.hidden_bias[i];
  }
  gates_.resize(static_cast<size_t>(rows * width_));
  hidden_states_.resize(static_cast<size_t>((steps + 1) * streams * hidden_));
  if (cell_ == Cell::lstm) cells_.resize(hidden_states_.size());
  if (cell_ == Cell::gru) candidates_.resize(static_cast<size_t>(rows * hidden_));
  scratch_.resize(static_cast<size_t>(streams * (width_ + 3 * hidden_)));

  pool.run(tiles(rows, kRowTile), [&](int64_t tile, int) {
    const int64_t first = tile * kRowTile;
    gemm_packed(std::min(kRowTile, rows - first), x + first * input_, input_, packed_input_, bias_.data(),
                false, gates_.data() + first * width_, width_);
  });

  const int64_t parts = std::min<int64_t>(pool.threads(), streams);
  pool.run(parts, [&](int64_t part, int) {
    const Streams mine = share(part, parts);
    for (int64_t s = mine.first; s < mine.first + mine.count; ++s) {
      const T* before = state + s * state_stride;
      std::copy(before, before + hidden_, hidden_states_.data() + s * hidden_);
      if (cell_ == Cell::lstm) std::copy(before + hidden_, before + 2 * hidden_, cells_.data() + s * hidden_);
    }
    T* scratch = scratch_.data() + mine.first * (width_ + 3 * hidden_);
    for (int64_t step = 0; step < steps; ++step) forward_step(step, mine, weights, scratch);
    for (int64_t s = mine.first; s < mine.first + mine.count; ++s) {
      const int64_t last = (steps * streams + s) * hidden_;
      T* after = state + s * state_stride;
      std::copy_n(hidden_states_.data() + last, hidden_, after);
      if (cell_ == Cell::lstm) std::copy_n(cells_.data() + last, hidden_, after + hidden_);
    }
  });
  std::copy_n(this->output(), rows * hidden_, output);
}

template <class T>
void RecurrentLayer<T>::forward_step(int64_t step, Streams mine, const LayerWeights<const T>& weights,
                                     T* scratch) {
  const T* before = hidden_states_.data() + (step * streams_ + mine.first) * hidden_;
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
  const int64_t rows = steps_ * streams_;
  const int64_t parts = std::min<int64_t>(pool.threads(), streams_);
  pool.run(parts, [&](int64_t part, int) {
    const Streams mine = share(part, parts);
    backward_steps(mine, weights, output_gradient, scratch_.data() + mine.first * (width_ + 3 * hidden_));
  });
  pool.run(tiles(rows, kRowTile), [&](int64_t tile, int) {
    const int64_t first = tile * kRowTile;
    gemm_nn(std::min(kRowTile, rows - first), input_, width_, gates_.data() + first * width_, width_,
            weights.input, input_, false, x_gradient + first * input_, input_);
  });
  weight_gradients(gradients, pool);
}

template <class T>
void RecurrentLayer<T>::backward_steps(Streams mine, const LayerWeights<const T>& weights,
                                       const T* output_gradient, T* scratch) {
  // Gradients by h and c that come from the step after, by the whole of h, and room for tanh(c).
  T* from_after = scratch;
  T* dc = from_after + mine.count * hidden_;
  T* whole = dc + mine.count * hidden_;
  T* room = whole + hidden_;
  std::fill(from_after, whole, T{0});
  const int64_t hidden_gates = cell_ == Cell::gru ? 2 * hidden_ : width_;
  for (int64_t step = steps_ - 1; step >= 0; --step) {
    for (int64_t i = 0; i < mine.count; ++i) {
      const int64_t row = (step * streams_ + mine.first + i) * hidden_;
      const int64_t next = row + streams_ * hidden_;
      T* own = gates(step, mine.first + i);
      T* after = from_after + i * hidden_;
      for (int64_t u = 0; u < hidden_; ++u) whole[u] = output_gradient[row + u] + after[u];
      switch (cell_) {
        case Cell::lstm:
          lstm_backward(hidden_, own, cells_.data() + row, cells_.data() + next, whole, dc + i * hidden_,
                        room);
          break;
        case Cell::gru:
          gru_backward(hidden_, own, candidates_.data() + row, hidden_states_.data() + row, whole, after);
          break;
        default:
          plain_backward(cell_, hidden_, hidden_states_.data() + next, whole, own);
      }
    }
    if (step == 0) break;
    gemm_nn(mine.count, hidden_, hidden_gates, gates(step, mine.first), width_, weights.hidden, hidden_,
            cell_ == Cell::gru, from_after, hidden_);
    if (cell_ == Cell::gru) {
      gemm_nn(mine.count, hidden_, hidden_, candidates_.data() + (step * streams_ + mine.first) * hidden_,
              hidden_, weights.hidden + hidden_gates * hidden_, hidden_, true, from_after, hidden_);
    }
  }
}

template <class T>
void RecurrentLayer<T>::weight_gradients(const LayerWeights<T>& gradients, ThreadPool& pool) {
  const int64_t rows = steps_ * streams_;
  const int64_t blocks = tiles(width_, kWeightTile);
  pool.run(2 * blocks, [&](int64_t item, int) {
    const int64_t first = item / 2 * kWeightTile;
    const int64_t count = std::min(kWeightTile, width_ - first);
    if (item % 2 == 0) {
      gemm_tn(count, input_, rows, gates_.data() + first, width_, x_, input_, false,
              gradients.input + first * input_, input_);
      column_sums(rows, count, gates_.data() + first, width_, gradients.input_bias + first);
      return;
    }
    // By the hidden part: the GRU's candidate rows have a gradient of their own.
    const int64_t candidate_first = cell_ == Cell::gru ? 2 * hidden_ : width_;
    const int64_t plain = std::clamp<int64_t>(candidate_first - first, 0, count);
    const auto part = [&](const T* sums, int64_t stride, int64_t at, int64_t n) {
      if (n == 0) return;
      gemm_tn(n, hidden_, rows, sums, stride, hidden_states_.data(), hidden_, false,
              gradients.hidden + at * hidden_, hidden_);
      column_sums(rows, n, sums, stride, gradients.hidden_bias + at);
    };
    part(gates_.data() + first, width_, first, plain);
    if (count > plain) {
      part(candidates_.data() + (first + plain - candidate_first), hidden_, first + plain, count - plain);
    }
  });
}

template class RecurrentLayer<float>;
template class RecurrentLayer<double>;

}  // namespace hsm::kernels
