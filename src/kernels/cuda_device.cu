#include <cuda_runtime_api.h>

#include "kernels/cuda_device.h"

#define HSM_TEXT_OF(x) #x
#define HSM_TEXT(x) HSM_TEXT_OF(x)

namespace hsm::kernels {

const char* cuda_compiler_version() {
  return HSM_TEXT(__CUDACC_VER_MAJOR__) "." HSM_TEXT(__CUDACC_VER_MINOR__);
}

CudaSurvey find_cuda_devices() {
  CudaSurvey survey;
  int count = 0;
  cudaError_t status = cudaGetDeviceCount(&count);
  for (int index = 0; status == cudaSuccess && index < count; ++index) {
    cudaDeviceProp properties;
    status = cudaGetDeviceProperties(&properties, index);
    if (status == cudaSuccess) {
      survey.devices.push_back(
          {index, properties.name, properties.major, properties.minor, properties.totalGlobalMem});
    }
  }
  if (survey.devices.empty()) {
    survey.reason = status == cudaSuccess ? "the CUDA driver shows no device" : cudaGetErrorString(status);
  }
  return survey;
}

}  // namespace hsm::kernels
