#pragma once
#include <cstdint>

namespace hsm::kernels {

/// Recurrent cells, with torch's formulas and order of gates (each gate has H rows of the weights).
enum class Cell {
  lstm,      ///< i, f, g, o:  c = σ(f)·c' + σ(i)·tanh(g),  h = σ(o)·tanh(c)
  gru,       ///< r, z, n:  n = tanh(x_n + σ(r)·h_n),  h = (1 − σ(z))·n + σ(z)·h'
  rnn_tanh,  ///< h = tanh(x + h_x)
  rnn_relu,  ///< h = max(0, x + h_x)
};

constexpr int64_t gate_count(Cell cell) {
  return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
}

/// Values of one stream's state: h, and c for an LSTM.
constexpr int64_t state_width(Cell cell, int64_t hidden) {
  return cell == Cell::lstm ? 2 * hidden : hidden;
}

}  // namespace hsm::kernels
