#include "kernels/gemm_loops.h"

namespace hsm::kernels {

const GemmKernels<float>& gemm_kernels_avx512(float) {
  return kGemmKernels<float>;
}
const GemmKernels<double>& gemm_kernels_avx512(double) {
  return kGemmKernels<double>;
}

}  // namespace hsm::kernels
