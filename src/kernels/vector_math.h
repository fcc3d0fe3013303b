#pragma once
#include <cstdint>

namespace hsm::kernels {

// Elementwise functions and reductions on one thread, vectorised; an element's result does not depend on its
// neighbours or its place, a reduction's on nothing but its inputs. Relative error of exp and tanh ≤ 4e-7 in
// float (sigmoid 5e-7). NaN stays NaN.

template <class T>
T log_sum_exp(const T* x, int64_t n);
/// x ← x − log_sum_exp(x), clamped to ≤ 0.
template <class T>
void log_softmax(T* x, int64_t n);
/// x ← scale · exp(x) / Σ exp(x); returns log_sum_exp(x).
template <class T>
T softmax(T* x, int64_t n, T scale);
/// x ← exp(x − lse).
template <class T>
void exp_minus(T* x, int64_t n, T lse);
template <class T>
void tanh_inplace(T* x, int64_t n);
template <class T>
void sigmoid_inplace(T* x, int64_t n);

/// LSTM of one row as torch's: gates [4H] hold preactivations of i, f, g, o; c and h [H] are replaced.
template <class T>
void lstm_pointwise(const T* gates, int64_t hidden, T* c, T* h);
/// GRU of one row as torch's: from_input [3H] and from_hidden [3H] hold r, z, n parts, each with its bias; h
/// is replaced.
template <class T>
void gru_pointwise(const T* from_input, const T* from_hidden, int64_t hidden, T* h);

}  // namespace hsm::kernels
