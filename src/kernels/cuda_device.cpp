#include "kernels/cuda_device.h"

#include <string>

#include "base/error.h"

namespace hsm::kernels {

void check_device(std::string_view device) {
  if (device == "auto" || device == "cpu") {
    return;
  }
  const std::string asked = "device \"" + std::string(device) + "\"";
  if (device != "cuda" && device.substr(0, 5) != "cuda:") {
    throw UsageError(asked + ": expected auto, cpu, cuda or cuda:N");
  }
  const CudaSurvey survey = find_cuda_devices();
  throw UsageError(asked + ": " +
                   (survey.devices.empty() ? survey.reason : "this version computes on the CPU only") +
                   "; use cpu or auto");
}

}  // namespace hsm::kernels
