#include "train/schedule.h"

#include <gtest/gtest.h>

namespace hsm {
namespace {

ScheduleConfig named(const char* name) {
  ScheduleConfig config;
  config.name = name;
  return config;
}

TEST(Schedule, ConstantStays) {
  const Schedule schedule(named("constant"), 0.3, 0);
  EXPECT_EQ(schedule.rate(0, 0), 0.3);
  EXPECT_EQ(schedule.rate(40, 100000), 0.3);
}

TEST(Schedule, EpochDecayStartsAfterTheGivenEpoch) {
  ScheduleConfig config = named("epoch_decay");
  config.after = 4;
  config.factor = 0.5;
  const Schedule schedule(config, 1.0, 0);
  EXPECT_EQ(schedule.rate(0, 0), 1.0);
  EXPECT_EQ(schedule.rate(3, 999), 1.0);
  EXPECT_EQ(schedule.rate(4, 1000), 0.5);
  EXPECT_EQ(schedule.rate(5, 1300), 0.25);
  EXPECT_EQ(schedule.rate(12, 9000), 1.0 / 512);
}

TEST(Schedule, EpochDecayFromTheFirstEpoch) {
  ScheduleConfig config = named("epoch_decay");
  config.factor = 0.25;
  const Schedule schedule(config, 8.0, 0);
  EXPECT_EQ(schedule.rate(0, 0), 2.0);
  EXPECT_EQ(schedule.rate(1, 1), 0.5);
}

TEST(Schedule, PlateauReducesWhenPatienceIsUsedUp) {
  ScheduleConfig config = named("plateau");
  config.factor = 0.5;
  config.patience = 1;
  config.minimum = 0.2;
  Schedule schedule(config, 1.0, 0);
  schedule.record_validation(100);  // best
  schedule.record_validation(100);  // equal is no improvement, but within patience
  EXPECT_EQ(schedule.rate(1, 1), 1.0);
  schedule.record_validation(101);
  EXPECT_EQ(schedule.rate(2, 2), 0.5);
  schedule.record_validation(101);
  EXPECT_EQ(schedule.rate(3, 3), 0.5);
  schedule.record_validation(99);  // a new best sets the count back
  schedule.record_validation(99.5);
  EXPECT_EQ(schedule.rate(4, 4), 0.5);
  schedule.record_validation(99.5);
  EXPECT_EQ(schedule.rate(5, 5), 0.25);
  schedule.record_validation(99.5);
  schedule.record_validation(99.5);
  EXPECT_EQ(schedule.rate(6, 6), 0.2);  // 0.125 is below the minimum
}

TEST(Schedule, PlateauStateRestoresExactly) {
  ScheduleConfig config = named("plateau");
  config.patience = 2;
  Schedule first(config, 1.0, 0);
  for (const double value : {50.0, 51.0, 52.0}) first.record_validation(value);
  Schedule second(config, 1.0, 0);
  second.restore(first.state());
  for (const double value : {50.5, 50.0, 49.0, 60.0}) {
    first.record_validation(value);
    second.record_validation(value);
    EXPECT_EQ(first.rate(0, 0), second.rate(0, 0));
  }
  EXPECT_EQ(second.state().reductions, 1);
}

TEST(Schedule, CosineFallsFromTheRateToTheMinimum) {
  ScheduleConfig config = named("cosine");
  config.minimum = 0.1;
  const Schedule schedule(config, 1.1, 300);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 0), 1.1);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 100), 0.1 + 0.75);  // cos 60° = 1/2
  EXPECT_DOUBLE_EQ(schedule.rate(1, 150), 0.6);
  EXPECT_DOUBLE_EQ(schedule.rate(1, 200), 0.1 + 0.25);
  EXPECT_DOUBLE_EQ(schedule.rate(2, 300), 0.1);
  EXPECT_DOUBLE_EQ(schedule.rate(2, 400), 0.1);
}

TEST(Schedule, WarmUpRisesLinearlyThenTheScheduleBegins) {
  ScheduleConfig config = named("cosine");
  config.warmup_steps = 4;
  const Schedule cosine(config, 1.0, 104);
  EXPECT_DOUBLE_EQ(cosine.rate(0, 0), 0.25);
  EXPECT_DOUBLE_EQ(cosine.rate(0, 2), 0.75);
  EXPECT_DOUBLE_EQ(cosine.rate(0, 3), 1.0);
  EXPECT_DOUBLE_EQ(cosine.rate(0, 4), 1.0);
  EXPECT_DOUBLE_EQ(cosine.rate(0, 54), 0.5);

  config.name = "epoch_decay";
  config.after = 1;
  config.factor = 0.5;
  const Schedule decay(config, 1.0, 0);
  EXPECT_DOUBLE_EQ(decay.rate(1, 1), 0.25);  // 2/4 of a half
  EXPECT_DOUBLE_EQ(decay.rate(1, 4), 0.5);
}

TEST(Schedule, CosineSurvivesFewerStepsThanWarmUp) {
  ScheduleConfig config = named("cosine");
  config.warmup_steps = 10;
  const Schedule schedule(config, 1.0, 5);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 4), 0.5);
  EXPECT_DOUBLE_EQ(schedule.rate(0, 10), 1.0);
}

}  // namespace
}  // namespace hsm
