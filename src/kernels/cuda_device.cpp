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

std::optional<int> usable_device(const CudaSurvey& survey) {
  const auto first = std::find_if(survey.devices.begin(), survey.devices.end(), will_do);
  return first == survey.devices.end() ? std::nullopt : std::optional(first->index);
}

std::optional<int> choose_device(std::string_view device, const CudaSurvey& survey) {
  if (device == "cpu" || device == "auto") return {};
  const std::vector<CudaDevice>& devices = survey.devices;
  const std::optional<int> number = parse_number(device);
  if (device != "cuda" && !number) {
    refuse(device, "expected auto, cpu, cuda or cuda:N");
  }
  if (number) {
    if (devices.empty()) refuse(device, survey.reason + "; use cpu");
    if (static_cast<size_t>(*number) >= devices.size()) {
      refuse(device, "the last GPU here is cuda:" + std::to_string(devices.size() - 1));
    }
    const CudaDevice& asked = devices[static_cast<size_t>(*number)];
    if (!will_do(asked)) refuse(device, describe(asked));
    return number;
  }
  if (const std::optional<int> first = usable_device(survey)) return first;
  refuse(device, (devices.empty() ? survey.reason : describe(devices.front())) + "; use cpu");
}

std::optional<int> choose_device(std::string_view device) {
  const bool asks = device.starts_with("cuda");
  return choose_device(device, asks ? find_cuda_devices() : CudaSurvey{});
}

}  // namespace hsm::kernels
