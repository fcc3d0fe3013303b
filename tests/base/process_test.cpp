#include <gtest/gtest.h>
#include <spdlog/spdlog.h>

#include <csignal>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "base/memory.h"
#include "base/signals.h"

namespace hsm {
namespace {

TEST(SignalRequests, TurnsSignalsIntoRequests) {
  SignalRequests requests;
  EXPECT_FALSE(requests.stop_requested());
  EXPECT_FALSE(requests.take_checkpoint_request());
  std::raise(SIGUSR1);
  std::raise(SIGUSR1);
  EXPECT_TRUE(requests.take_checkpoint_request());
  EXPECT_FALSE(requests.take_checkpoint_request());
  std::raise(SIGTERM);
  EXPECT_TRUE(requests.stop_requested());
}

TEST(SignalRequestsDeathTest, ASecondStopEndsTheProcess) {
  EXPECT_EXIT(
      {
        const SignalRequests requests;
        std::raise(SIGINT);
        std::raise(SIGINT);
      },
      ::testing::ExitedWithCode(128 + SIGINT), "");
}

TEST(Memory, SeesAllocatedPages) {
  const uint64_t before = anonymous_resident_bytes();
  const std::vector<char> block(64 << 20, 1);
  EXPECT_GE(anonymous_resident_bytes(), before + (60U << 20)) << static_cast<int>(block.back());
  EXPECT_GE(peak_resident_bytes(), 64U << 20);
}

TEST(Logging, TakesKnownLevelsOnly) {
  set_up_logging("warning");
  EXPECT_EQ(spdlog::get_level(), spdlog::level::warn);
  set_up_logging("off");
  EXPECT_THROW(set_up_logging("loud"), UsageError);
  set_up_logging("info");
}

}  // namespace
}  // namespace hsm
