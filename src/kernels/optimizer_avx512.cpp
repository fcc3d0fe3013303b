#include "kernels/optimizer_loops.h"

namespace hsm::kernels {

const OptimizerKernels& optimizer_kernels_avx512() {
  return kOptimizerKernels;
}

}  // namespace hsm::kernels
