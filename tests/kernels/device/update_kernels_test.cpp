// Updates of parameters, by the device's bodies run on the host, against the CPU's.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/device/host_kernels.h"
#include "kernels/device/index_kernels.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels::device {
namespace {

using hsm::test::HostKernels;
using hsm::test::random_values;

struct State {
  std::vector<float> value, first, second;
  OptimizerSlot slot(int64_t width) { return {value, first, second, {}, width}; }
  bool operator==(const State&) const = default;
};

constexpr int64_t kRows = 9;
constexpr int64_t kWidth = 5;

class DeviceUpdate : public testing::TestWithParam<OptimizerOptions> {
 protected:
  static State start() {
    State state{random_values<float>(kRows * kWidth, 1, 2), random_values<float>(kRows * kWidth, 2, 2),
                random_values<float>(kRows * kWidth, 3, 2)};
    for (float& second : state.second) second = std::abs(second);
    return state;
  }
  /// The CPU's update from a gradient that is dense.
  static State expected(const std::vector<float>& gradient, float coefficient) {
    State state = start();
    OptimizerSlot slot = state.slot(kWidth);
    if (!uses_first_moment(GetParam())) slot.first = {};
    if (!uses_second_moment(GetParam())) slot.second = {};
    ThreadPool pool(1);
    StepHistory history(6, {});
    history.advance(0.1);
    kernels::update(GetParam(), history, slot, gradient, coefficient, pool);
    return state;
  }
  static UpdateValues<void> update_of(State& state, const StepOutcome& outcome,
                                      const std::vector<float>& gradient) {
    return {make_rule(GetParam(), 7, 0.1, 1),
            &outcome,
            gradient.data(),
            nullptr,
            nullptr,
            kWidth,
            state.value.data(),
            state.first.data(),
            state.second.data(),
            nullptr};
  }
  static void expect_near(const State& state, const State& expected) {
    for (const auto member : {&State::value, &State::first, &State::second}) {
      for (size_t i = 0; i < expected.value.size(); ++i) {
        EXPECT_NEAR((state.*member)[i], (expected.*member)[i], 2e-6 * (1 + std::abs((expected.*member)[i])));
      }
    }
  }
};

StepOutcome good() {
  const UpdateRule rule = make_rule(DeviceUpdate::GetParam(), 7, 0.1, 1);
  return {0, 1, 7, 0.5F, rule.rate, rule.root_factor, 1};
}

TEST_P(DeviceUpdate, OfADenseGradientIsTheCpus) {
  const std::vector<float> gradient = random_values<float>(kRows * kWidth, 4, 2);
  State state = start();
  HostKernels(ElementType::f32).update(update_of(state, good(), gradient), kRows * kWidth);
  expect_near(state, expected(gradient, 0.5F));
}

TEST_P(DeviceUpdate, OfListedRowsLeavesTheOthersAlone) {
  const std::vector<int32_t> rows{7, 2, 8};
  const std::vector<float> gradient = random_values<float>(3 * kWidth, 4, 2);
  std::vector<float> dense(kRows * kWidth);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(gradient.begin() + static_cast<int64_t>(i) * kWidth, kWidth,
                dense.begin() + rows[i] * kWidth);
  }
  State state = start();
  const StepOutcome outcome = good();
  UpdateValues<void> values = update_of(state, outcome, gradient);
  values.rows = rows.data();
  HostKernels(ElementType::f32).update(values, 3 * kWidth);
  State whole = expected(dense, 0.5F);
  const State before = start();
  for (int64_t row = 0; row < kRows; ++row) {
    if (std::find(rows.begin(), rows.end(), row) != rows.end()) continue;
    for (const auto member : {&State::value, &State::first, &State::second}) {
      std::copy_n((before.*member).begin() + row * kWidth, kWidth, (whole.*member).begin() + row * kWidth);
    }
  }
  expect_near(state, whole);
}

TEST_P(DeviceUpdate, WithPlacesIsThatOfTheDenseGradientButForAdamwsMoments) {
  const std::vector<int32_t> places{-1, 1, -1, 0, -1, -1, 2, -1, -1};
  const std::vector<float> gradient = random_values<float>(3 * kWidth, 4, 2);
  std::vector<float> dense(kRows * kWidth);
  for (size_t row = 0; row < places.size(); ++row) {
    if (places[row] < 0) continue;
    std::copy_n(gradient.begin() + places[row] * kWidth, kWidth,
                dense.begin() + static_cast<int64_t>(row) * kWidth);
  }
  State state = start();
  const StepOutcome outcome = good();
  UpdateValues<void> values = update_of(state, outcome, gradient);
  values.places = places.data();
  HostKernels(ElementType::f32).update(values, kRows * kWidth);
  State whole = expected(dense, 0.5F);
  if (GetParam().kind == OptimizerKind::adamw) {
    const State before = start();
    for (int64_t i = 0; i < kRows * kWidth; ++i) {
      const auto at = static_cast<size_t>(i);
      if (places[static_cast<size_t>(i / kWidth)] >= 0) continue;
      whole.value[at] = before.value[at] * static_cast<float>(1 - 0.1 * GetParam().weight_decay);
      whole.first[at] = before.first[at];
      whole.second[at] = before.second[at];
    }
  }
  expect_near(state, whole);
}

TEST_P(DeviceUpdate, AfterAnOutcomeThatIsNotOkChangesNothing) {
  const std::vector<float> gradient = random_values<float>(kRows * kWidth, 4, 2);
  State state = start();
  const StepOutcome bad{0, std::nan(""), 6, 0, 0.1F, 1, 0};
  HostKernels(ElementType::f32).update(update_of(state, bad, gradient), kRows * kWidth);
  EXPECT_EQ(state, start());
}

TEST_P(DeviceUpdate, KeepsTheSixteenBitCopyInStep) {
  const std::vector<float> gradient = random_values<float>(kRows * kWidth, 4, 2);
  State state = start();
  std::vector<BFloat16> copy(kRows * kWidth);
  const StepOutcome outcome = good();
  UpdateValues<void> values = update_of(state, outcome, gradient);
  values.copy = copy.data();
  HostKernels(ElementType::bf16).update(values, kRows * kWidth);
  for (size_t i = 0; i < copy.size(); ++i) EXPECT_EQ(copy[i].bits, to_bfloat16(state.value[i]).bits);
}

INSTANTIATE_TEST_SUITE_P(Kinds, DeviceUpdate,
                         testing::Values(OptimizerOptions{.kind = OptimizerKind::sgd},
                                         OptimizerOptions{.kind = OptimizerKind::sgd, .weight_decay = 0.1},
                                         OptimizerOptions{.kind = OptimizerKind::momentum,
                                                          .weight_decay = 0.01},
                                         OptimizerOptions{.kind = OptimizerKind::adagrad},
                                         OptimizerOptions{.kind = OptimizerKind::adam, .weight_decay = 0.1},
                                         OptimizerOptions{.kind = OptimizerKind::adamw, .weight_decay = 0.1}),
                         [](const auto& instance) { return "case" + std::to_string(instance.index); });

}  // namespace
}  // namespace hsm::kernels::device
