#include "kernels/cuda_device.h"

#include <algorithm>
#include <charconv>
#include <string>

#include "base/error.h"

namespace hsm::kernels {
namespace {

constexpr std::string_view kNumbered = "cuda:";

[[noreturn]] void refuse(std::string_view device, const std::string& reason) {
  throw UsageError("device \"" + std::string(device) + "\": " + reason);
}

bool will_do(const CudaDevice& device) {
  return device.major >= kLeastCapability;
}

std::string describe(const CudaDevice& device) {
  return "cuda:" + std::to_string(device.index) + " (" + device.name + ") has compute capability " +
         std::to_string(device.major) + "." + std::to_string(device.minor) + ", expected " +
         std::to_string(kLeastCapability) + ".0 or later";
}

std::optional<int> parse_number(std::string_view device) {
  if (!device.starts_with(kNumbered)) return {};
  const std::string_view digits = device.substr(kNumbered.size());
  int number = 0;
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), number);
  if (error != std::errc() || end != digits.data() + digits.size() || number < 0) return {};
  return number;
}

}  // namespace

std::optional<int> choose_device(std::string_view device, const CudaSurvey& survey) {
  if (device == "cpu") return {};
  const std::vector<CudaDevice>& devices = survey.devices;
  const std::optional<int> number = parse_number(device);
  if (device != "auto" && device != "cuda" && !number) {
    refuse(device, "expected auto, cpu, cuda or cuda:N");
  }
  if (number) {
    if (devices.empty()) refuse(device, survey.reason + "; use cpu or auto");
    if (static_cast<size_t>(*number) >= devices.size()) {
      refuse(device, "the last GPU here is cuda:" + std::to_string(devices.size() - 1));
    }
    const CudaDevice& asked = devices[static_cast<size_t>(*number)];
    if (!will_do(asked)) refuse(device, describe(asked));
    return number;
  }
  const auto first = std::find_if(devices.begin(), devices.end(), will_do);
  if (first != devices.end()) return first->index;
  if (device == "auto") return {};
  refuse(device, (devices.empty() ? survey.reason : describe(devices.front())) + "; use cpu or auto");
}

std::optional<int> choose_device(std::string_view device) {
  return device == "cpu" ? std::nullopt : choose_device(device, find_cuda_devices());
}

}  // namespace hsm::kernels
