#include "kernels/device/search_launch.cuh"

namespace hsm::kernels::device {
HSM_INSTANTIATE_SEARCH(Fma<float>)
}  // namespace hsm::kernels::device
