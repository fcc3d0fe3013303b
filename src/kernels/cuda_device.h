#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace hsm::kernels {

/// A GPU as the CUDA runtime describes it.
struct CudaDevice {
  int index = 0;
  std::string name;
  int major = 0;  ///< compute capability
  int minor = 0;
  uint64_t memory = 0;  ///< bytes in all
};

/// Result of looking for GPUs. `reason` says why there is none to use; empty when there are devices.
struct CudaSurvey {
  std::vector<CudaDevice> devices;
  std::string reason;
};

/// Release of the CUDA compiler that this program was built with, such as "13.0"; empty when without CUDA.
const char* cuda_compiler_version();

/// Looks for GPUs; never throws, and starts no CUDA context.
CudaSurvey find_cuda_devices();

/// Accepts the devices this version computes on: "auto" and "cpu". UsageError for "cuda", "cuda:N", saying
/// what is missing, and for anything else.
void check_device(std::string_view device);

}  // namespace hsm::kernels
