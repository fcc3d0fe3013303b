#include "gpu/gpu_module.h"

#include <dlfcn.h>
#include <gmock/gmock.h>

#include "base/error.h"
#include "gpu/engines.h"
#include "kernels/cuda_device.h"

namespace hsm {
namespace {

using testing::HasSubstr;

std::string refusal(const std::filesystem::path& library) {
  try {
    load_gpu_module(library);
  } catch (const UsageError& error) {
    return error.what();
  }
  return "opened";
}

/// The library of this build; nothing when it was built without CUDA.
std::filesystem::path built_library() {
  const std::filesystem::path library = std::filesystem::path(HSM_PROGRAM).parent_path() / "libhsm_cuda.so";
  return std::filesystem::exists(library) ? library : std::filesystem::path();
}

TEST(GpuModule, IsLookedForBesideTheProgram) {
  try {
    find_gpu_module();
    FAIL() << "there is none beside the test program";
  } catch (const UsageError& error) {
    EXPECT_THAT(error.what(), HasSubstr("libhsm_cuda.so is neither in "));
  }
}

TEST(GpuModule, WhatCannotBeOpenedIsRefusedWithTheReason) {
  EXPECT_THAT(refusal("/nothing/libhsm_cuda.so"), HasSubstr("/nothing/libhsm_cuda.so"));
  EXPECT_THAT(refusal("/nothing/libhsm_cuda.so"), HasSubstr("scripts/setup --gpu"));
  Dl_info math;  // some library that is there
  ASSERT_NE(::dladdr(reinterpret_cast<void*>(&::dlopen), &math), 0);
  EXPECT_THAT(refusal(math.dli_fname), HasSubstr("not a library of this program"));
}

TEST(GpuModule, OfThisBuildOpensOrSaysWhichLibraryIsMissing) {
  if (built_library().empty()) GTEST_SKIP() << "built without CUDA";
  const std::string refused = refusal(built_library());
  EXPECT_THAT(refused, testing::AnyOf(testing::Eq("opened"), HasSubstr("scripts/setup --gpu")));
}

// Without a GPU the module can't make an engine; what it throws must be an error of this program all the
// same.
TEST(GpuModule, ThrowsErrorsThatTheProgramKnows) {
  if (built_library().empty() || refusal(built_library()) != "opened") GTEST_SKIP() << "no module to open";
  if (!kernels::find_cuda_devices().devices.empty()) GTEST_SKIP() << "there is a GPU";
  const GpuModule& module = load_gpu_module(built_library());
  Config config = test::EngineCase{"", [](Config&) {}}.config();
  const HeadLayout head = test::engine_layout();
  ThreadPool pool(1);
  const auto make = [&] {
    return module.make_training_engine(config, make_shape(config.model, head.words(), head.clusters()), head,
                                       pool, {});
  };
  EXPECT_THROW(make(), Error);
  const auto trained = test::cpu_engine(config, pool);
  EXPECT_THROW(module.make_decode_device(trained->shape(), head, trained->weights(), 0, {}), Error);
  config.train.precision = "fp8";
  EXPECT_THROW(make(), UsageError);
}

}  // namespace
}  // namespace hsm
