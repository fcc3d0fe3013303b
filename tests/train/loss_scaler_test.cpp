#include "train/loss_scaler.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <limits>
#include <random>
#include <vector>

namespace hsm {
namespace {

using testing::ElementsAre;

// One step whose result is known at once.
double step(LossScaler& scaler, bool overflow = false) {
  const double scale = scaler.begin_step();
  scaler.finish_step(overflow);
  return scale;
}

TEST(LossScaler, DoublesAfterManyGoodSteps) {
  LossScaler scaler(0);
  for (int64_t i = 0; i < LossScaler::kGrowthSteps; ++i) ASSERT_EQ(step(scaler), 65536) << i;
  EXPECT_EQ(step(scaler), 2 * 65536);
}

TEST(LossScaler, HalvesAfterAnOverflowAndCountsAfresh) {
  LossScaler scaler(0);
  for (int64_t i = 0; i + 1 < LossScaler::kGrowthSteps; ++i) step(scaler);
  step(scaler, true);
  for (int64_t i = 0; i < LossScaler::kGrowthSteps; ++i) ASSERT_EQ(step(scaler), 32768) << i;
  EXPECT_EQ(step(scaler), 65536);
}

TEST(LossScaler, KeepsWithinItsBounds) {
  LossScaler scaler(0);
  for (int i = 0; i < 20; ++i) step(scaler, true);
  EXPECT_EQ(step(scaler), LossScaler::kLeastScale);
  for (int64_t i = 0; i < 30 * LossScaler::kGrowthSteps; ++i) step(scaler);
  EXPECT_EQ(step(scaler), LossScaler::kLargestScale);
}

TEST(LossScaler, AnOverflowAtTheLeastScaleIsDivergence) {
  LossScaler scaler(0);
  for (double scale = LossScaler::kFirstScale; scale > LossScaler::kLeastScale; scale /= 2) {
    scaler.begin_step();
    EXPECT_TRUE(scaler.finish_step(true));
  }
  EXPECT_EQ(scaler.begin_step(), LossScaler::kLeastScale);
  EXPECT_FALSE(scaler.finish_step(true));
  scaler.begin_step();
  EXPECT_TRUE(scaler.finish_step(false));
}

TEST(LossScaler, StepsBegunBeforeTheHalvingWasKnownDoNotHalveAgain) {
  LossScaler scaler(1);
  EXPECT_EQ(scaler.begin_step(), 65536);  // 0 overflows
  EXPECT_EQ(scaler.begin_step(), 65536);  // 1, too, at the same scale
  scaler.finish_step(true);
  EXPECT_EQ(scaler.begin_step(), 32768);  // 2 knows of 0
  scaler.finish_step(true);
  EXPECT_EQ(scaler.begin_step(), 32768);  // 3 knows of 1, which says nothing new
  scaler.finish_step(true);
  EXPECT_EQ(scaler.begin_step(), 16384);  // 4 knows of 2
}

// Scales of `steps` steps that overflow at random. `wait`: after which steps to wait for all pending ones,
// and to go on with a new scaler from the old one's state.
std::vector<double> scales(int64_t lookahead, int steps, uint32_t wait_every) {
  std::mt19937 random(7);
  std::vector<bool> overflows;
  for (int i = 0; i < steps; ++i) overflows.push_back(random() % 5 == 0);
  LossScaler scaler(lookahead);
  std::vector<double> result;
  int finished = 0;
  const auto finish_until = [&](int pending) {
    while (static_cast<int>(result.size()) - finished > pending) {
      scaler.finish_step(overflows[static_cast<size_t>(finished++)]);
    }
  };
  for (int i = 0; i < steps; ++i) {
    result.push_back(scaler.begin_step());
    finish_until(static_cast<int>(lookahead));
    if (wait_every == 0 || static_cast<uint32_t>(i) % wait_every != 0) continue;
    finish_until(0);
    LossScaler other(lookahead);
    EXPECT_TRUE(other.restore(scaler.state()));
    scaler = other;
  }
  return result;
}

TEST(LossScaler, WaitingAndResumingChangeNothing) {
  for (const int64_t lookahead : {0, 1, 3}) {
    const std::vector<double> expected = scales(lookahead, 40, 0);
    EXPECT_LT(expected.back(), expected.front());
    for (const uint32_t every : {1U, 2U, 7U}) EXPECT_EQ(scales(lookahead, 40, every), expected) << every;
  }
}

TEST(LossScaler, RefusesWhatIsNoState) {
  LossScaler scaler(1);
  step(scaler, true);
  const std::vector<double> before = scaler.state();
  EXPECT_THAT(before, ElementsAre(65536, 0, 65536, 1));
  const double nan = std::numeric_limits<double>::quiet_NaN();
  for (const std::vector<double>& wrong : std::vector<std::vector<double>>{
           {}, {1024}, {0, 0}, {nan, 0}, {1024, -1}, {1024, 1e9}, {1024, 0, 1}, {1024, 0, 512, 2}}) {
    EXPECT_FALSE(scaler.restore(wrong)) << testing::PrintToString(wrong);
    EXPECT_EQ(scaler.state(), before);
  }
}

}  // namespace
}  // namespace hsm
