#include "gpu/training_device.h"

#include <gmock/gmock.h>

#include "base/error.h"

namespace hsm {
namespace {

using testing::HasSubstr;

TEST(TrainingDevice, AutoTellsOfAGpuThatItLeavesIdle) {
  kernels::CudaSurvey survey;
  EXPECT_EQ(idle_gpu_note(survey), "");
  survey.devices.push_back({0, "Old One", 7, 0, 1});
  EXPECT_EQ(idle_gpu_note(survey), "");
  survey.devices.push_back({1, "New One", 9, 0, 1});
  EXPECT_THAT(idle_gpu_note(survey), HasSubstr("cuda:1 (New One) is there, and training runs on the CPU"));
  EXPECT_THAT(idle_gpu_note(survey), HasSubstr("--device cuda:1"));
  EXPECT_THAT(idle_gpu_note(survey), HasSubstr("scripts/gpu-check"));
}

TEST(TrainingDevice, PrecisionsOfAGpuAreRefusedUnlessOneIsAskedFor) {
  Config config;
  config.train.precision = "bf16";
  for (const char* device : {"auto", "cpu"}) {
    config.runtime.device = device;
    try {
      choose_training_engine(config);
      FAIL() << "accepted";
    } catch (const UsageError& error) {
      EXPECT_THAT(error.what(), HasSubstr("train.precision: \"bf16\" given"));
      EXPECT_THAT(error.what(), HasSubstr("runtime.device \"cuda\""));
    }
  }
}

}  // namespace
}  // namespace hsm
