#include "kernels/cell_loops.h"

namespace hsm::kernels {

const CellKernels<float>& cell_kernels_avx512(float) {
  return kCellKernels<float>;
}
const CellKernels<double>& cell_kernels_avx512(double) {
  return kCellKernels<double>;
}

}  // namespace hsm::kernels
