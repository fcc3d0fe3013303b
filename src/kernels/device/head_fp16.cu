#include "kernels/device/head_launch.cuh"

namespace hsm::kernels::device {
HSM_INSTANTIATE_HEAD(Fp16)
}  // namespace hsm::kernels::device
