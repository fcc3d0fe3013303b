#include "kernels/cell_loops.h"

namespace hsm::kernels {

const CellKernels<float>& cell_kernels_portable(float) {
  return kCellKernels<float>;
}
const CellKernels<double>& cell_kernels_portable(double) {
  return kCellKernels<double>;
}

}  // namespace hsm::kernels
