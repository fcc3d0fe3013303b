#include "kernels/device/head_launch.cuh"

namespace hsm::kernels::device {
HSM_INSTANTIATE_HEAD(Tf32)
}  // namespace hsm::kernels::device
