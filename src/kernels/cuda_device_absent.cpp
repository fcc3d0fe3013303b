// What cuda_device.cu defines, in a build without CUDA.
#include "kernels/cuda_device.h"

namespace hsm::kernels {

const char* cuda_compiler_version() {
  return "";
}

CudaSurvey find_cuda_devices() {
  return {{}, "this program was built without CUDA"};
}

}  // namespace hsm::kernels
