#include "kernels/cuda_device.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace hsm::kernels {
namespace {

using testing::HasSubstr;

TEST(CudaDevice, SurveyHasDevicesOrSaysWhyNot) {
  const CudaSurvey survey = find_cuda_devices();
  EXPECT_NE(survey.devices.empty(), survey.reason.empty());
  for (size_t i = 0; i < survey.devices.size(); ++i) {
    EXPECT_EQ(survey.devices[i].index, static_cast<int>(i));
    EXPECT_FALSE(survey.devices[i].name.empty());
    EXPECT_GE(survey.devices[i].major, 5);
    EXPECT_GT(survey.devices[i].memory, uint64_t{1} << 28);
  }
}

TEST(CudaDevice, WithoutCompilerThereAreNoDevices) {
  if (*cuda_compiler_version() == '\0') {
    EXPECT_THAT(find_cuda_devices().reason, HasSubstr("built without CUDA"));
  } else {
    EXPECT_THAT(cuda_compiler_version(), testing::MatchesRegex("[0-9]+\\.[0-9]+"));
  }
}

TEST(CudaDevice, CpuIsAccepted) {
  EXPECT_NO_THROW(check_device("auto"));
  EXPECT_NO_THROW(check_device("cpu"));
}

TEST(CudaDevice, OtherDevicesAreRefusedWithTheirNameAndAReason) {
  for (const char* device : {"cuda", "cuda:1"}) {
    try {
      check_device(device);
      FAIL() << device << " was accepted";
    } catch (const UsageError& error) {
      const CudaSurvey survey = find_cuda_devices();
      EXPECT_THAT(error.what(), HasSubstr("\"" + std::string(device) + "\""));
      EXPECT_THAT(error.what(), HasSubstr(survey.devices.empty() ? survey.reason : "on the CPU only"));
    }
  }
  for (const char* device : {"gpu", "", "CUDA", "cudax"}) {
    EXPECT_THROW(check_device(device), UsageError) << device;
  }
}

}  // namespace
}  // namespace hsm::kernels
