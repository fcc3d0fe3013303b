#include "kernels/device/head_launch.cuh"

namespace hsm::kernels::device {
HSM_INSTANTIATE_HEAD(Fma<float>)
}  // namespace hsm::kernels::device
