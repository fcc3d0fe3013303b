#pragma once
// The loops of cell_kernels.h; see simd.h for who may include this file.
#include "kernels/cell_kernels.h"
#include "kernels/simd.h"
#include "kernels/vector_functions.h"

namespace hsm::kernels {
namespace {

template <class T>
void lstm_forward_loop(int64_t hidden, T* gates, const T* c_before, T* c, T* h) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    T* at = gates + u;
    const Vector<T> in = vsigmoid(read(at));
    const Vector<T> forget = vsigmoid(read(at + hidden));
    const Vector<T> fresh = vtanh(read(at + 2 * hidden));
    const Vector<T> out = vsigmoid(read(at + 3 * hidden));
    const Vector<T> cell = multiply_add(forget, read(c_before + u), in * fresh);
    write(at, in);
    write(at + hidden, forget);
    write(at + 2 * hidden, fresh);
    write(at + 3 * hidden, out);
    write(c + u, cell);
    write(h + u, out * vtanh(cell));
  });
}

/// Derivatives of the logistic function and of tanh from their values.
template <class T>
inline Vector<T> sigmoid_slope(Vector<T> y) {
  return multiply_add(-y, y, y);
}
template <class T>
inline Vector<T> tanh_slope(Vector<T> y) {
  return multiply_add(-y, y, broadcast(T{1}));
}

template <class T>
void lstm_backward_loop(int64_t hidden, T* gates, const T* c_before, const T* c, OutputGradient<T> dh,
                        T* dc) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    T* at = gates + u;
    const Vector<T> in = read(at);
    const Vector<T> forget = read(at + hidden);
    const Vector<T> fresh = read(at + 2 * hidden);
    const Vector<T> out = read(at + 3 * hidden);
    const Vector<T> tanh_c = vtanh(read(c + u));
    const Vector<T> by_h = read(dh.direct + u) + read(dh.from_after + u);
    const Vector<T> by_c = multiply_add(by_h * out, tanh_slope<T>(tanh_c), read(dc + u));
    write(at, by_c * fresh * sigmoid_slope<T>(in));
    write(at + hidden, by_c * read(c_before + u) * sigmoid_slope<T>(forget));
    write(at + 2 * hidden, by_c * in * tanh_slope<T>(fresh));
    write(at + 3 * hidden, by_h * tanh_c * sigmoid_slope<T>(out));
    write(dc + u, by_c * forget);
  });
}

template <class T>
void gru_forward_loop(int64_t hidden, T* gates, const T* hidden_parts, T* candidate, const T* h_before,
                      T* h) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    T* at = gates + u;
    const T* from_h = hidden_parts + u;
    const Vector<T> reset = vsigmoid(read(at) + read(from_h));
    const Vector<T> keep = vsigmoid(read(at + hidden) + read(from_h + hidden));
    const Vector<T> part = read(from_h + 2 * hidden);
    const Vector<T> fresh = vtanh(multiply_add(reset, part, read(at + 2 * hidden)));
    write(at, reset);
    write(at + hidden, keep);
    write(at + 2 * hidden, fresh);
    write(candidate + u, part);
    write(h + u, multiply_add(keep, read(h_before + u) - fresh, fresh));
  });
}

template <class T>
void gru_backward_loop(int64_t hidden, T* gates, T* candidate, const T* h_before, OutputGradient<T> dh,
                       T* dh_before) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    T* at = gates + u;
    const Vector<T> reset = read(at);
    const Vector<T> keep = read(at + hidden);
    const Vector<T> fresh = read(at + 2 * hidden);
    const Vector<T> part = read(candidate + u);
    const Vector<T> by_h = read(dh.direct + u) + read(dh.from_after + u);
    const Vector<T> by_fresh = multiply_add(-by_h, keep, by_h) * tanh_slope<T>(fresh);
    write(at, by_fresh * part * sigmoid_slope<T>(reset));
    write(at + hidden, by_h * (read(h_before + u) - fresh) * sigmoid_slope<T>(keep));
    write(at + 2 * hidden, by_fresh);
    write(candidate + u, by_fresh * reset);
    write(dh_before + u, by_h * keep);
  });
}

template <class T>
void plain_forward_loop(Cell cell, int64_t hidden, const T* sums, T* h) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    const Vector<T> sum = read(sums + u);
    // NaN stays NaN, so that divergence shows.
    write(h + u, cell == Cell::rnn_tanh ? vtanh(sum) : sum < Vector<T>{} ? Vector<T>{} : sum);
  });
}

template <class T>
void plain_backward_loop(Cell cell, int64_t hidden, const T* h, OutputGradient<T> dh, T* d_sums) {
  for_vectors<T>(hidden, [&](int64_t u, auto read, auto write) {
    const Vector<T> y = read(h + u);
    const Vector<T> by_h = read(dh.direct + u) + read(dh.from_after + u);
    const Vector<T> by_relu = y > Vector<T>{} ? by_h : Vector<T>{};
    write(d_sums + u, cell == Cell::rnn_tanh ? by_h * tanh_slope<T>(y) : by_relu);
  });
}

template <class T>
constexpr CellKernels<T> kCellKernels = {lstm_forward_loop<T>, lstm_backward_loop<T>, gru_forward_loop<T>,
                                         gru_backward_loop<T>, plain_forward_loop<T>, plain_backward_loop<T>};

}  // namespace
}  // namespace hsm::kernels
