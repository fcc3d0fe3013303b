// Penalties on activations and the mean of the weights, by the device's bodies run on the host.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <vector>

#include "kernels/device/host_kernels.h"
#include "kernels/device/index_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels::device {
namespace {

using hsm::test::HostKernels;
using hsm::test::random_values;

/// Outputs [steps, streams, units], and which of them have a target.
struct Outputs {
  static constexpr int64_t kSteps = 4;
  static constexpr int64_t kStreams = 3;
  static constexpr int64_t kUnits = 5;
  std::vector<int32_t> targets{1, -1, 2, 3, -1, -1, 5, 6, 7, 8, 9, -1};
  std::vector<float> values = random_values<float>(kSteps * kStreams * kUnits, 1, 2);

  [[nodiscard]] bool counts(int64_t token) const { return targets[static_cast<size_t>(token)] >= 0; }
  [[nodiscard]] double activation() const {
    double sum = 0;
    for (size_t i = 0; i < values.size(); ++i) {
      if (counts(static_cast<int64_t>(i) / kUnits)) sum += double{values[i]} * values[i];
    }
    return sum;
  }
  [[nodiscard]] double temporal() const {
    double sum = 0;
    for (size_t i = kStreams * kUnits; i < values.size(); ++i) {
      const int64_t token = static_cast<int64_t>(i) / kUnits;
      const double change = double{values[i]} - values[i - kStreams * kUnits];
      if (counts(token) && counts(token - kStreams)) sum += change * change;
    }
    return sum;
  }
};

/// 3 · the derivative of half of `penalty` by each output, from differences, added to `gradient`.
std::vector<float> with_penalty(double (Outputs::*penalty)() const, std::vector<float> gradient) {
  constexpr float kDifference = 1.0F / 64;
  Outputs outputs;
  for (size_t i = 0; i < gradient.size(); ++i) {
    const float value = outputs.values[i];
    outputs.values[i] = value + kDifference;
    const double above = (outputs.*penalty)();
    outputs.values[i] = value - kDifference;
    const double below = (outputs.*penalty)();
    outputs.values[i] = value;
    gradient[i] += static_cast<float>(3 * (above - below) / (4 * kDifference));
  }
  return gradient;
}

TEST(DevicePenalties, HaveTheGradientsOfTheirSquares) {
  const Outputs outputs;
  const std::vector<float> start = random_values<float>(static_cast<int64_t>(outputs.values.size()), 2, 2);
  for (const bool temporal : {false, true}) {
    std::vector<float> gradient = start;
    const PenaltyPlace place{outputs.targets.data(), Outputs::kSteps, Outputs::kStreams, Outputs::kUnits, 3,
                             outputs.values.data(),  gradient.data()};
    HostKernels kernels(ElementType::f32);
    temporal ? kernels.add_temporal_penalty(place) : kernels.add_activation_penalty(place);
    const std::vector<float> expected =
        with_penalty(temporal ? &Outputs::temporal : &Outputs::activation, start);
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(gradient[i], expected[i], 1e-4) << "temporal " << temporal << ", " << i;
    }
  }
}

TEST(DeviceAverageOfValues, IsTheMeanOfAllButTheFirstOfItsUpdates) {
  HostKernels kernels(ElementType::f32);
  constexpr int64_t kCount = 11;
  std::vector<float> mean(kCount, std::nanf(""));
  std::vector<double> sum(kCount);
  StepOutcome outcome{};
  outcome.updates = 7;
  int64_t steps = 0;
  for (const int32_t ok : {1, 1, 0, 1, 1, 0, 1}) {
    const std::vector<float> value = random_values<float>(kCount, static_cast<uint64_t>(100 + steps), 2);
    outcome.ok = ok;
    outcome.updates += ok;
    kernels.average({&outcome, 7, value.data(), mean.data()}, kCount);
    if (ok == 0) continue;
    ++steps;
    for (size_t i = 0; i < sum.size(); ++i) {
      if (steps == 2) sum[i] = 0;  // the second takes the first one's place
      sum[i] += value[i];
      EXPECT_NEAR(mean[i], sum[i] / static_cast<double>(std::max<int64_t>(1, steps - 1)), 1e-6);
    }
  }
  EXPECT_EQ(steps, 5);
}

}  // namespace
}  // namespace hsm::kernels::device
