#include "kernels/optimizer_loops.h"

namespace hsm::kernels {

const OptimizerKernels& optimizer_kernels_portable() {
  return kOptimizerKernels;
}

}  // namespace hsm::kernels
