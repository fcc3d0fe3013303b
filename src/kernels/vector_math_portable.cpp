#include "kernels/vector_math_loops.h"

namespace hsm::kernels {

const VectorMathKernels<float>& vector_math_portable(float) {
  return kVectorMathKernels<float>;
}
const VectorMathKernels<double>& vector_math_portable(double) {
  return kVectorMathKernels<double>;
}

}  // namespace hsm::kernels
