#pragma once
#include <cstdint>

#include "kernels/cell.h"

namespace hsm::kernels {

// Elementwise parts of the recurrent cells in training, one stream and step a call, backward by the chain
// rule on cell.h's formulas. H values each unless said.

/// gates [4H]: sums before the nonlinearity → i, f, g, o after it. c = f·c_before + i·g, h = o·tanh(c).
template <class T>
void lstm_forward(int64_t hidden, T* gates, const T* c_before, T* c, T* h);

/// gates [4H]: i, f, g, o → gradients by the sums. `dc`: in, the gradient by c from the step after; out, by
/// c_before. `dh` is the whole gradient by h. `scratch` [H].
template <class T>
void lstm_backward(int64_t hidden, T* gates, const T* c_before, const T* c, const T* dh, T* dc, T* scratch);

/// gates [3H]: input parts → r, z, n. hidden_parts [3H] is scratch after the call but for its third part, the
/// hidden part of n, which goes to `candidate`.
template <class T>
void gru_forward(int64_t hidden, T* gates, T* hidden_parts, T* candidate, const T* h_before, T* h);

/// gates [3H]: r, z, n → gradients by the input parts; candidate → gradient by its sum. `dh` is the whole
/// gradient by h; `dh_before` gets the direct part of that by h_before.
template <class T>
void gru_backward(int64_t hidden, T* gates, T* candidate, const T* h_before, const T* dh, T* dh_before);

/// h = tanh(sums) or max(0, sums).
template <class T>
void plain_forward(Cell cell, int64_t hidden, const T* sums, T* h);

/// d_sums = gradient by the sums, from h and dh.
template <class T>
void plain_backward(Cell cell, int64_t hidden, const T* h, const T* dh, T* d_sums);

}  // namespace hsm::kernels
