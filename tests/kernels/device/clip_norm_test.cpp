// The norm of the gradients and what follows from it, by the device's bodies run on the host.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "kernels/device/host_kernels.h"
#include "kernels/device/index_kernels.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels::device {
namespace {

using hsm::test::HostKernels;
using hsm::test::random_values;

TEST(ClipNorm, ScalesDownWhatIsTooLongAndTakesTheLossScaleOut) {
  HostKernels kernels(ElementType::f32);
  const std::vector<float> a = random_values<float>(100000, 5, 2);
  const std::vector<float> b = random_values<float>(3, 6, 2);
  ThreadPool pool(1);
  const double norm = std::sqrt(kernels::sum_of_squares(a, pool) + kernels::sum_of_squares(b, pool));
  std::vector<double> squares(2);
  std::vector<double> scratch(DeviceKernels::kNormScratch);
  kernels.sum_of_squares({a.data(), 100000}, &squares[0], scratch.data());
  kernels.sum_of_squares({b.data(), 3}, &squares[1], scratch.data());
  const std::vector<float> losses{3, 4};
  StepOutcome outcome{};
  const auto clip = [&](double limit, double scale) {
    kernels.clip_norm({squares.data(), 2, losses.data(), 2, limit, scale, 0.1, 0, 0, &outcome});
    return outcome;
  };
  EXPECT_NEAR(clip(0, 1).norm, norm, 1e-12 * norm);
  EXPECT_EQ(outcome.loss, 7);
  EXPECT_EQ(outcome.coefficient, 1);
  EXPECT_EQ(outcome.ok, 1);
  EXPECT_EQ(clip(2 * norm, 1).coefficient, 1);
  EXPECT_FLOAT_EQ(clip(norm / 4, 1).coefficient, 0.25F);
  EXPECT_NEAR(clip(norm / 4, 1024).norm, norm / 1024, 1e-12 * norm);
  EXPECT_FLOAT_EQ(outcome.coefficient, 1.0F / 1024);
}

TEST(ClipNorm, WhatIsNotFiniteIsNotOk) {
  HostKernels kernels(ElementType::f32);
  for (const double square : {1.0, std::numeric_limits<double>::infinity(), std::nan("")}) {
    for (const float loss : {1.0F, std::numeric_limits<float>::infinity(), std::nanf("")}) {
      StepOutcome outcome{};
      kernels.clip_norm({&square, 1, &loss, 1, 5, 1, 0.1, 0.9, 0.99, &outcome});
      const bool finite = std::isfinite(square) && std::isfinite(loss);
      EXPECT_EQ(outcome.ok, finite ? 1 : 0);
      EXPECT_EQ(outcome.coefficient, finite ? 1 : 0);
      EXPECT_EQ(outcome.updates, finite ? 1 : 0);
    }
  }
}

// What Adam divides by counts updates; a skipped step is none.
TEST(ClipNorm, CorrectsTheBiasByTheNumberOfUpdates) {
  HostKernels kernels(ElementType::f32);
  const OptimizerOptions options{.kind = OptimizerKind::adam, .beta1 = 0.8, .beta2 = 0.9};
  StepOutcome outcome{};
  int64_t updates = 0;
  for (const float loss : {1.0F, 2.0F, std::nanf(""), 3.0F, INFINITY, INFINITY, 2.0F}) {
    const double square = 1;
    kernels.clip_norm({&square, 1, &loss, 1, 0, 1, 0.3, options.beta1, options.beta2, &outcome});
    if (std::isfinite(loss)) ++updates;
    EXPECT_EQ(outcome.updates, updates);
    if (outcome.ok == 0) continue;
    const UpdateRule expected = make_rule(options, updates, 0.3, 1);
    EXPECT_FLOAT_EQ(outcome.rate, expected.rate);
    EXPECT_FLOAT_EQ(outcome.root_factor, expected.root_factor);
  }
  EXPECT_EQ(updates, 4);
}

TEST(ClipNorm, GivesOtherRulesTheLearningRate) {
  HostKernels kernels(ElementType::f32);
  StepOutcome outcome{};
  const double square = 1;
  const float loss = 1;
  kernels.clip_norm({&square, 1, &loss, 1, 0, 1, 0.3, 0, 0, &outcome});
  EXPECT_EQ(outcome.rate, 0.3F);
  EXPECT_EQ(outcome.root_factor, 1);
}

}  // namespace
}  // namespace hsm::kernels::device
