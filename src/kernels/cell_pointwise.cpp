#include "kernels/cell_pointwise.h"

#include "kernels/cell_kernels.h"

namespace hsm::kernels {
namespace {

template <class T>
const CellKernels<T>& active() {
  static const CellKernels<T>& kernels = cell_kernels<T>(active_instruction_set());
  return kernels;
}

}  // namespace

template <class T>
const CellKernels<T>& cell_kernels(InstructionSet set) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::avx512:
      return cell_kernels_avx512(T{});
    case InstructionSet::avx2:
      return cell_kernels_avx2(T{});
#endif
    default:
      return cell_kernels_portable(T{});
  }
}

template <class T>
void lstm_forward(int64_t hidden, T* gates, const T* c_before, T* c, T* h) {
  active<T>().lstm_forward(hidden, gates, c_before, c, h);
}
template <class T>
void lstm_backward(int64_t hidden, T* gates, const T* c_before, const T* c, OutputGradient<T> dh, T* dc) {
  active<T>().lstm_backward(hidden, gates, c_before, c, dh, dc);
}
template <class T>
void gru_forward(int64_t hidden, T* gates, const T* hidden_parts, T* candidate, const T* h_before, T* h) {
  active<T>().gru_forward(hidden, gates, hidden_parts, candidate, h_before, h);
}
template <class T>
void gru_backward(int64_t hidden, T* gates, T* candidate, const T* h_before, OutputGradient<T> dh,
                  T* dh_before) {
  active<T>().gru_backward(hidden, gates, candidate, h_before, dh, dh_before);
}
template <class T>
void plain_forward(Cell cell, int64_t hidden, const T* sums, T* h) {
  active<T>().plain_forward(cell, hidden, sums, h);
}
template <class T>
void plain_backward(Cell cell, int64_t hidden, const T* h, OutputGradient<T> dh, T* d_sums) {
  active<T>().plain_backward(cell, hidden, h, dh, d_sums);
}

#define HSM_INSTANTIATE(T)                                                                \
  template const CellKernels<T>& cell_kernels<T>(InstructionSet);                         \
  template void lstm_forward<T>(int64_t, T*, const T*, T*, T*);                           \
  template void lstm_backward<T>(int64_t, T*, const T*, const T*, OutputGradient<T>, T*); \
  template void gru_forward<T>(int64_t, T*, const T*, T*, const T*, T*);                  \
  template void gru_backward<T>(int64_t, T*, T*, const T*, OutputGradient<T>, T*);        \
  template void plain_forward<T>(Cell, int64_t, const T*, T*);                            \
  template void plain_backward<T>(Cell, int64_t, const T*, OutputGradient<T>, T*);
HSM_INSTANTIATE(float)
HSM_INSTANTIATE(double)
#undef HSM_INSTANTIATE

}  // namespace hsm::kernels
