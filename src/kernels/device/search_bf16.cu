#include "kernels/device/search_launch.cuh"

namespace hsm::kernels::device {
HSM_INSTANTIATE_SEARCH(Bf16)
}  // namespace hsm::kernels::device
