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

CudaSurvey survey_of(std::initializer_list<int> capabilities) {
  CudaSurvey survey;
  for (const int major : capabilities) {
    survey.devices.push_back({static_cast<int>(survey.devices.size()), "Some GPU", major, 6, 1 << 30});
  }
  if (survey.devices.empty()) survey.reason = "no driver";
  return survey;
}

TEST(ChooseDevice, AGpuIsTakenOnlyWhenItIsAskedFor) {
  for (const char* device : {"cpu", "auto"}) {
    EXPECT_EQ(choose_device(device), std::nullopt);
    EXPECT_EQ(choose_device(device, survey_of({})), std::nullopt);
    EXPECT_EQ(choose_device(device, survey_of({9})), std::nullopt);
  }
}

TEST(ChooseDevice, CudaIsTheFirstGpuThatWillDo) {
  EXPECT_EQ(choose_device("cuda", survey_of({7, 9, 8})), 1);
  EXPECT_EQ(usable_device(survey_of({7, 9, 8})), 1);
  EXPECT_EQ(usable_device(survey_of({7})), std::nullopt);
  EXPECT_EQ(usable_device(survey_of({})), std::nullopt);
}

TEST(ChooseDevice, ANumberIsTakenByItsWord) {
  EXPECT_EQ(choose_device("cuda:0", survey_of({8, 9})), 0);
  EXPECT_EQ(choose_device("cuda:1", survey_of({8, 9})), 1);
}

TEST(ChooseDevice, AGpuThatIsNotThereIsRefusedWithItsNameAndTheReason) {
  const auto message = [](const char* device, const CudaSurvey& survey) -> std::string {
    try {
      choose_device(device, survey);
    } catch (const UsageError& error) {
      return error.what();
    }
    return "accepted";
  };
  EXPECT_EQ(message("cuda", survey_of({})), "device \"cuda\": no driver; use cpu");
  EXPECT_EQ(message("cuda:1", survey_of({})), "device \"cuda:1\": no driver; use cpu");
  EXPECT_EQ(message("cuda:2", survey_of({8, 9})), "device \"cuda:2\": the last GPU here is cuda:1");
  EXPECT_EQ(message("cuda:0", survey_of({7})),
            "device \"cuda:0\": cuda:0 (Some GPU) has compute capability 7.6, expected 8.0 or later");
  EXPECT_THAT(message("cuda", survey_of({7})), HasSubstr("capability 7.6, expected 8.0 or later; use cpu"));
  for (const char* device : {"gpu", "", "CUDA", "cudax", "cuda:", "cuda:x", "cuda:-1", "cuda:1x"}) {
    EXPECT_THAT(message(device, survey_of({8})), HasSubstr("expected auto, cpu, cuda or cuda:N")) << device;
  }
}

}  // namespace
}  // namespace hsm::kernels
