#include "kernels/vector_math_loops.h"

namespace hsm::kernels {

const VectorMathKernels<float>& vector_math_avx2(float) {
  return kVectorMathKernels<float>;
}
const VectorMathKernels<double>& vector_math_avx2(double) {
  return kVectorMathKernels<double>;
}

}  // namespace hsm::kernels
