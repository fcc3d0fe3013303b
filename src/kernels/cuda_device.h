#pragma once
#include <cstdint>
#include <optional>
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

/// Compute capability that the device code is made for; later ones will do, too.
inline constexpr int kLeastCapability = 8;

/// The first GPU that will do.
std::optional<int> usable_device(const CudaSurvey& survey);

/// The GPU that `device` asks for among those of `survey`, or nothing for the CPU: "cpu"; "auto", which is
/// the CPU, too, until GPUs have proved themselves; "cuda", the first GPU that will do; "cuda:N". UsageError
/// saying what is missing when a GPU is asked for that isn't there or won't do, and for anything else.
std::optional<int> choose_device(std::string_view device, const CudaSurvey& survey);
/// The same, looking for GPUs only when `device` asks for one.
std::optional<int> choose_device(std::string_view device);

}  // namespace hsm::kernels
