#include "kernels/gemm_loops.h"

namespace hsm::kernels {

const GemmKernels<float>& gemm_kernels_avx2(float) {
  return kGemmKernels<float>;
}
const GemmKernels<double>& gemm_kernels_avx2(double) {
  return kGemmKernels<double>;
}

}  // namespace hsm::kernels
