#include "kernels/vector_math.h"

#include "kernels/vector_math_kernels.h"

namespace hsm::kernels {
namespace {

template <class T>
const VectorMathKernels<T>& active() {
  static const VectorMathKernels<T>& kernels = vector_math_kernels<T>(active_instruction_set());
  return kernels;
}

}  // namespace

template <class T>
const VectorMathKernels<T>& vector_math_kernels(InstructionSet set) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::avx512:
      return vector_math_avx512(T{});
    case InstructionSet::avx2:
      return vector_math_avx2(T{});
#endif
    default:
      return vector_math_portable(T{});
  }
}

template <class T>
T log_sum_exp(const T* x, int64_t n) {
  return active<T>().log_sum_exp(x, n);
}
template <class T>
void log_softmax(T* x, int64_t n) {
  active<T>().log_softmax(x, n);
}
template <class T>
T softmax(T* x, int64_t n, T scale) {
  return active<T>().softmax(x, n, scale);
}
template <class T>
void exp_minus(T* x, int64_t n, T lse) {
  active<T>().exp_minus(x, n, lse);
}
template <class T>
void tanh_inplace(T* x, int64_t n) {
  active<T>().tanh_inplace(x, n);
}
template <class T>
void sigmoid_inplace(T* x, int64_t n) {
  active<T>().sigmoid_inplace(x, n);
}
template <class T>
void lstm_pointwise(const T* gates, int64_t hidden, T* c, T* h) {
  active<T>().lstm_pointwise(gates, hidden, c, h);
}
template <class T>
void gru_pointwise(const T* from_input, const T* from_hidden, int64_t hidden, T* h) {
  active<T>().gru_pointwise(from_input, from_hidden, hidden, h);
}

#define HSM_INSTANTIATE(T)                                                     \
  template const VectorMathKernels<T>& vector_math_kernels<T>(InstructionSet); \
  template T log_sum_exp(const T*, int64_t);                                   \
  template void log_softmax(T*, int64_t);                                      \
  template T softmax(T*, int64_t, T);                                          \
  template void exp_minus(T*, int64_t, T);                                     \
  template void tanh_inplace(T*, int64_t);                                     \
  template void sigmoid_inplace(T*, int64_t);                                  \
  template void lstm_pointwise(const T*, int64_t, T*, T*);                     \
  template void gru_pointwise(const T*, const T*, int64_t, T*);
HSM_INSTANTIATE(float)
HSM_INSTANTIATE(double)
#undef HSM_INSTANTIATE

}  // namespace hsm::kernels
