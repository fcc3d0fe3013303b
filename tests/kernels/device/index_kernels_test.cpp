// The device's bodies for an index, run on the host, against the CPU's kernels.
#include "kernels/device/index_kernels.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>

#include "kernels/device/host_kernels.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/optimizer_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels::device {
namespace {

using hsm::test::HostKernels;

using hsm::test::random_values;

std::vector<float> numbers(int64_t count, uint64_t seed) {
  return random_values<float>(count, seed, 2);
}

TEST(IndexKernels, GatheredRowsAndTheirGradientAreTheCpus) {
  constexpr int64_t kWidth = 7;
  const std::vector<int64_t> rows{5, 0, 5, 9, 3, 5, 0};
  const std::vector<int32_t> rows32(rows.begin(), rows.end());
  const std::vector<float> table = numbers(10 * kWidth, 1);
  const std::vector<float> gradient = numbers(static_cast<int64_t>(rows.size()) * kWidth, 2);
  const std::vector<float> scales{2, 0, 0.5F, 1, 1, 3, 1};
  ThreadPool pool(1);
  RowGroups groups;
  groups.assign(rows);
  const std::vector<int32_t> order(groups.order.begin(), groups.order.end());
  const std::vector<int32_t> starts(groups.first.begin(), groups.first.end());
  for (const bool scaled : {false, true}) {
    const std::span<const float> factors = scaled ? std::span<const float>(scales) : std::span<const float>();
    std::vector<float> expected(rows.size() * kWidth);
    kernels::gather_rows(table.data(), kWidth, rows, factors, expected.data(), pool);
    HostKernels kernels(ElementType::f32);
    std::vector<float> out(expected.size());
    kernels.gather_rows(table.data(), kWidth, rows32.data(), scaled ? scales.data() : nullptr,
                        static_cast<int64_t>(rows.size()), out.data());
    EXPECT_EQ(out, expected);

    RowGradients<float> expected_rows;
    kernels::scatter_rows(groups, factors, gradient.data(), kWidth, expected_rows, pool);
    std::vector<float> sums(expected_rows.values.size());
    kernels.sum_rows(gradient.data(), kWidth, order.data(), starts.data(), scaled ? scales.data() : nullptr,
                     groups.size(), sums.data());
    EXPECT_EQ(sums, expected_rows.values);
  }
}

TEST(IndexKernels, RowsAreAddedAtTheirPlaces) {
  HostKernels kernels(ElementType::f32);
  std::vector<float> to{1, 2, 3, 4, 5, 6};
  const std::vector<float> from{10, 20, 30, 40};
  const std::vector<int32_t> places{2, 0};
  kernels.add_rows(from.data(), places.data(), 2, 2, to.data());
  EXPECT_EQ(to, (std::vector<float>{31, 42, 3, 4, 15, 26}));
}

TEST(IndexKernels, MasksAreTheCpus) {
  ThreadPool pool(1);
  for (const bool locked : {false, true}) {
    for (const int64_t units : {1, 8, 13}) {
      const DropoutShape shape{4, 3, units, 2};
      std::vector<float> expected = numbers(4 * 3 * units, 3);
      std::vector<float> values = expected;
      apply_dropout(shape, 0.4, locked, {0x123456789ABCDEFULL, Purpose::dropout_hidden, 77, 2},
                    expected.data(), pool);
      HostKernels kernels(ElementType::f32);
      kernels.dropout({0x123456789ABCDEFULL, static_cast<uint32_t>(Purpose::dropout_hidden), 77, 2, 4, 3, 2,
                       units, 0.4, locked},
                      values.data());
      EXPECT_EQ(values, expected) << units << ", locked " << locked;
    }
  }
}

TEST(IndexKernels, SixteenBitElementsRoundToNearest) {
  const std::vector<float> table{1.0F, 1.0F + 1.0F / 256, -3.14159265F};
  const std::vector<int32_t> rows{0, 1, 2};
  const std::vector<float> scales{1.0F / 3, 1, 1};
  for (const ElementType type : {ElementType::bf16, ElementType::f16}) {
    const bool bf16 = type == ElementType::bf16;
    const auto store = [&](float x) { return bf16 ? to_bfloat16(x).bits : to_half(x).bits; };
    const auto load = [&](uint16_t x) { return bf16 ? to_float(BFloat16{x}) : to_float(Half{x}); };
    std::vector<uint16_t> stored;
    for (const float value : table) stored.push_back(store(value));
    HostKernels kernels(type);
    std::vector<uint16_t> out(3);
    kernels.gather_rows(stored.data(), 1, rows.data(), scales.data(), 3, out.data());
    EXPECT_EQ(out[0], store(1.0F / 3));
    EXPECT_NEAR(load(out[2]), table[2], bf16 ? 0.01 : 0.001);
  }
}

TEST(ClipNorm, ScalesDownWhatIsTooLongAndTakesTheLossScaleOut) {
  HostKernels kernels(ElementType::f32);
  const std::vector<float> a = numbers(100000, 5);
  const std::vector<float> b = numbers(3, 6);
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

// ---- penalties and the mean of the weights

/// Outputs [steps, streams, units], and which of them have a target.
struct Outputs {
  static constexpr int64_t kSteps = 4;
  static constexpr int64_t kStreams = 3;
  static constexpr int64_t kUnits = 5;
  std::vector<int32_t> targets{1, -1, 2, 3, -1, -1, 5, 6, 7, 8, 9, -1};
  std::vector<float> values = numbers(kSteps * kStreams * kUnits, 1);

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
  const std::vector<float> start = numbers(static_cast<int64_t>(outputs.values.size()), 2);
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
    const std::vector<float> value = numbers(kCount, static_cast<uint64_t>(100 + steps));
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

// ---- updates

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
    State state{numbers(kRows * kWidth, 1), numbers(kRows * kWidth, 2), numbers(kRows * kWidth, 3)};
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
  const std::vector<float> gradient = numbers(kRows * kWidth, 4);
  State state = start();
  HostKernels(ElementType::f32).update(update_of(state, good(), gradient), kRows * kWidth);
  expect_near(state, expected(gradient, 0.5F));
}

TEST_P(DeviceUpdate, OfListedRowsLeavesTheOthersAlone) {
  const std::vector<int32_t> rows{7, 2, 8};
  const std::vector<float> gradient = numbers(3 * kWidth, 4);
  std::vector<float> dense(kRows * kWidth);
  for (size_t i = 0; i < rows.size(); ++i) {
    std::copy_n(gradient.begin() + static_cast<int64_t>(i) * kWidth, kWidth,
                dense.begin() + rows[i] * kWidth);
  }
  State state = start();
  UpdateValues<void> values = update_of(state, good(), gradient);
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
  const std::vector<float> gradient = numbers(3 * kWidth, 4);
  std::vector<float> dense(kRows * kWidth);
  for (size_t row = 0; row < places.size(); ++row) {
    if (places[row] < 0) continue;
    std::copy_n(gradient.begin() + places[row] * kWidth, kWidth,
                dense.begin() + static_cast<int64_t>(row) * kWidth);
  }
  State state = start();
  UpdateValues<void> values = update_of(state, good(), gradient);
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
  const std::vector<float> gradient = numbers(kRows * kWidth, 4);
  State state = start();
  const StepOutcome bad{0, std::nan(""), 6, 0, 0.1F, 1, 0};
  HostKernels(ElementType::f32).update(update_of(state, bad, gradient), kRows * kWidth);
  EXPECT_EQ(state, start());
}

TEST_P(DeviceUpdate, KeepsTheSixteenBitCopyInStep) {
  const std::vector<float> gradient = numbers(kRows * kWidth, 4);
  State state = start();
  std::vector<BFloat16> copy(kRows * kWidth);
  UpdateValues<void> values = update_of(state, good(), gradient);
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
