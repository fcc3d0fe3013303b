#include "kernels/cell_pointwise.h"

#include <algorithm>

#include "kernels/vector_math.h"

namespace hsm::kernels {

template <class T>
void lstm_forward(int64_t hidden, T* gates, const T* c_before, T* c, T* h) {
  const T* i = gates;
  const T* f = gates + hidden;
  const T* g = gates + 2 * hidden;
  const T* o = gates + 3 * hidden;
  sigmoid_inplace(gates, 2 * hidden);
  tanh_inplace(gates + 2 * hidden, hidden);
  sigmoid_inplace(gates + 3 * hidden, hidden);
  for (int64_t u = 0; u < hidden; ++u) c[u] = f[u] * c_before[u] + i[u] * g[u];
  std::copy(c, c + hidden, h);
  tanh_inplace(h, hidden);
  for (int64_t u = 0; u < hidden; ++u) h[u] *= o[u];
}

template <class T>
void lstm_backward(int64_t hidden, T* gates, const T* c_before, const T* c, const T* dh, T* dc, T* scratch) {
  T* i = gates;
  T* f = gates + hidden;
  T* g = gates + 2 * hidden;
  T* o = gates + 3 * hidden;
  T* tanh_c = scratch;
  std::copy(c, c + hidden, tanh_c);
  tanh_inplace(tanh_c, hidden);
  for (int64_t u = 0; u < hidden; ++u) {
    const T d = dc[u] + dh[u] * o[u] * (1 - tanh_c[u] * tanh_c[u]);
    const T before = d * f[u];
    const T di = d * g[u] * i[u] * (1 - i[u]);
    const T df = d * c_before[u] * f[u] * (1 - f[u]);
    const T dg = d * i[u] * (1 - g[u] * g[u]);
    o[u] = dh[u] * tanh_c[u] * o[u] * (1 - o[u]);
    i[u] = di;
    f[u] = df;
    g[u] = dg;
    dc[u] = before;
  }
}

template <class T>
void gru_forward(int64_t hidden, T* gates, T* hidden_parts, T* candidate, const T* h_before, T* h) {
  T* r = gates;
  const T* z = gates + hidden;
  T* n = gates + 2 * hidden;
  for (int64_t u = 0; u < 2 * hidden; ++u) gates[u] += hidden_parts[u];
  sigmoid_inplace(gates, 2 * hidden);
  std::copy(hidden_parts + 2 * hidden, hidden_parts + 3 * hidden, candidate);
  for (int64_t u = 0; u < hidden; ++u) n[u] += r[u] * candidate[u];
  tanh_inplace(n, hidden);
  for (int64_t u = 0; u < hidden; ++u) h[u] = (1 - z[u]) * n[u] + z[u] * h_before[u];
}

template <class T>
void gru_backward(int64_t hidden, T* gates, T* candidate, const T* h_before, const T* dh, T* dh_before) {
  T* r = gates;
  T* z = gates + hidden;
  T* n = gates + 2 * hidden;
  for (int64_t u = 0; u < hidden; ++u) {
    const T dn = dh[u] * (1 - z[u]) * (1 - n[u] * n[u]);
    const T dz = dh[u] * (h_before[u] - n[u]) * z[u] * (1 - z[u]);
    const T dr = dn * candidate[u] * r[u] * (1 - r[u]);
    dh_before[u] = dh[u] * z[u];
    candidate[u] = dn * r[u];
    r[u] = dr;
    z[u] = dz;
    n[u] = dn;
  }
}

template <class T>
void plain_forward(Cell cell, int64_t hidden, const T* sums, T* h) {
  if (cell == Cell::rnn_tanh) {
    std::copy(sums, sums + hidden, h);
    tanh_inplace(h, hidden);
  } else {
    // NaN stays NaN, so that divergence shows.
    for (int64_t u = 0; u < hidden; ++u) h[u] = sums[u] < 0 ? T{0} : sums[u];
  }
}

template <class T>
void plain_backward(Cell cell, int64_t hidden, const T* h, const T* dh, T* d_sums) {
  if (cell == Cell::rnn_tanh) {
    for (int64_t u = 0; u < hidden; ++u) d_sums[u] = dh[u] * (1 - h[u] * h[u]);
  } else {
    for (int64_t u = 0; u < hidden; ++u) d_sums[u] = h[u] > 0 ? dh[u] : T{0};
  }
}

#define HSM_INSTANTIATE(T)                                                           \
  template void lstm_forward<T>(int64_t, T*, const T*, T*, T*);                      \
  template void lstm_backward<T>(int64_t, T*, const T*, const T*, const T*, T*, T*); \
  template void gru_forward<T>(int64_t, T*, T*, T*, const T*, T*);                   \
  template void gru_backward<T>(int64_t, T*, T*, const T*, const T*, T*);            \
  template void plain_forward<T>(Cell, int64_t, const T*, T*);                       \
  template void plain_backward<T>(Cell, int64_t, const T*, const T*, T*);
HSM_INSTANTIATE(float)
HSM_INSTANTIATE(double)
#undef HSM_INSTANTIATE

}  // namespace hsm::kernels
