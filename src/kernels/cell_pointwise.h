#pragma once
#include <cstdint>

#include "kernels/cell.h"

namespace hsm::kernels {

// Elementwise parts of the recurrent cells in training, one stream and step a call, backward by the chain
// rule on cell.h's formulas. H values each unless said. Vectorised; a value's result depends neither on its
// neighbours nor on its place.

/// The gradient by h in two parts that are to be added.
template <class T>
struct OutputGradient {
  const T* direct = nullptr;      ///< from what reads h in its own step
  const T* from_after = nullptr;  ///< from the step after
};

/// gates [4H]: sums before the nonlinearity → i, f, g, o after it. c = f·c_before + i·g, h = o·tanh(c).
template <class T>
void lstm_forward(int64_t hidden, T* gates, const T* c_before, T* c, T* h);

/// gates [4H]: i, f, g, o → gradients by the sums. `dc`: in, the gradient by c from the step after; out, by
/// c_before.
template <class T>
void lstm_backward(int64_t hidden, T* gates, const T* c_before, const T* c, OutputGradient<T> dh, T* dc);

/// gates [3H]: input parts → r, z, n. hidden_parts [3H], of which the third goes to `candidate`.
template <class T>
void gru_forward(int64_t hidden, T* gates, const T* hidden_parts, T* candidate, const T* h_before, T* h);

/// gates [3H]: r, z, n → gradients by the input parts; candidate → gradient by its sum. `dh_before` gets the
/// direct part of the gradient by h_before; it may be dh.from_after.
template <class T>
void gru_backward(int64_t hidden, T* gates, T* candidate, const T* h_before, OutputGradient<T> dh,
                  T* dh_before);

/// h = tanh(sums) or max(0, sums).
template <class T>
void plain_forward(Cell cell, int64_t hidden, const T* sums, T* h);

/// d_sums = gradient by the sums.
template <class T>
void plain_backward(Cell cell, int64_t hidden, const T* h, OutputGradient<T> dh, T* d_sums);

}  // namespace hsm::kernels
