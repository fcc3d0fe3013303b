#include "kernels/optimizer.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <numeric>
#include <stdexcept>

#include "kernels/optimizer_kernels.h"
#include "kernels/random_values.h"
#include "reference/optimizer_oracle.h"

namespace hsm::kernels {
namespace {

using reference::DenseOptimizer;
using test::random_values;

struct Setting {
  std::string name;
  OptimizerKind kind;
  double weight_decay;
  double initial_accumulator = 0;
};
std::ostream& operator<<(std::ostream& out, const Setting& s) {
  return out << s.name << " decay " << s.weight_decay;
}

std::vector<Setting> settings() {
  return {{"sgd", OptimizerKind::sgd, 0},           {"sgd", OptimizerKind::sgd, 0.01},
          {"momentum", OptimizerKind::momentum, 0}, {"momentum", OptimizerKind::momentum, 0.01},
          {"adagrad", OptimizerKind::adagrad, 0},   {"adagrad", OptimizerKind::adagrad, 0.01, 0.1},
          {"adam", OptimizerKind::adam, 0},         {"adam", OptimizerKind::adam, 0.01},
          {"adamw", OptimizerKind::adamw, 0},       {"adamw", OptimizerKind::adamw, 0.1}};
}

OptimizerOptions options_of(const Setting& s) {
  return {.kind = s.kind,
          .momentum = 0.8,
          .beta1 = 0.85,
          .beta2 = 0.97,
          .epsilon = 1e-6,
          .initial_accumulator = s.initial_accumulator,
          .weight_decay = s.weight_decay};
}

DenseOptimizer oracle_of(const Setting& s, const std::vector<float>& start) {
  return {s.name,         0.8,
          0.85,           0.97,
          1e-6,           s.initial_accumulator,
          s.weight_decay, std::vector<double>(start.begin(), start.end())};
}

/// A parameter of `rows` rows with the optimiser's state.
struct Tensor {
  Tensor(const OptimizerOptions& options, std::vector<float> start, int64_t row_width)
      : value(std::move(start)), width(row_width) {
    const InitialMoments initial = initial_moments(options);
    if (uses_first_moment(options)) first.assign(value.size(), initial.first);
    if (uses_second_moment(options)) second.assign(value.size(), initial.second);
    if (needs_catch_up(options)) stamps.assign(value.size() / static_cast<size_t>(width), 0);
  }
  OptimizerSlot slot() { return {value, first, second, stamps, width}; }

  std::vector<float> value, first, second;
  std::vector<int64_t> stamps;
  int64_t width;
};

/// Rates of a schedule with warm-up and decay.
double rate_of(int64_t step) {
  return 0.05 * std::min(1.0, static_cast<double>(step) / 4) * std::pow(0.97, step);
}

void expect_near(const std::vector<float>& got, const std::vector<double>& expected, double tolerance) {
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << i;
  }
}

std::string name_of(const testing::TestParamInfo<Setting>& setting) {
  return setting.param.name + (setting.param.weight_decay > 0 ? "_with_decay" : "");
}

template <class Keep>
std::vector<Setting> settings_where(Keep keep) {
  std::vector<Setting> all = settings();
  std::erase_if(all, [&](const Setting& s) { return !keep(options_of(s)); });
  return all;
}

class Optimizer : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Kinds, Optimizer, testing::ValuesIn(settings()), name_of);

/// Those whose updates by rows amount to the dense ones.
class ExactByRows : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Kinds, ExactByRows, testing::ValuesIn(settings_where([](const OptimizerOptions& o) {
                           return o.kind != OptimizerKind::adam && o.kind != OptimizerKind::adamw;
                         })),
                         name_of);

/// Those that leave untouched rows alone for good.
class OnlyTouchedRows : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(
    Kinds, OnlyTouchedRows,
    testing::ValuesIn(settings_where([](const OptimizerOptions& o) { return !needs_catch_up(o); })), name_of);

TEST_P(Optimizer, DenseUpdateFollowsTorchsFormula) {
  constexpr int64_t kSize = 40009;  // several pieces and a tail
  const OptimizerOptions options = options_of(GetParam());
  Tensor tensor(options, random_values<float>(kSize, 1), 1);
  DenseOptimizer oracle = oracle_of(GetParam(), tensor.value);
  StepHistory history;
  ThreadPool pool(2);
  for (int64_t step = 1; step <= 12; ++step) {
    const std::vector<float> gradient = random_values<float>(kSize, 100 + step, 3);
    std::vector<double> scaled(gradient.begin(), gradient.end());
    for (double& g : scaled) g *= 0.25;
    history.advance(rate_of(step));
    update(options, history, tensor.slot(), gradient, 0.25F, pool);
    oracle.step(scaled, rate_of(step));
  }
  expect_near(tensor.value, oracle.value, 2e-6);
}

TEST_P(Optimizer, EveryInstructionSetFollowsTheFormula) {
  const OptimizerOptions options = options_of(GetParam());
  const double rate = 0.05;
  for (const InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(name(set));
    for (const int64_t size : {1, 5, 16, 67}) {
      Tensor tensor(options, random_values<float>(size, 2), 1);
      DenseOptimizer oracle = oracle_of(GetParam(), tensor.value);
      const std::vector<float> gradient = random_values<float>(size, 3);
      const bool corrected = options.kind == OptimizerKind::adam || options.kind == OptimizerKind::adamw;
      // As for the first step.
      const UpdateRule rule{.kind = options.kind,
                            .rate = static_cast<float>(corrected ? rate / (1 - 0.85) : rate),
                            .decay = static_cast<float>(options.weight_decay),
                            .keep = static_cast<float>(1 - rate * options.weight_decay),
                            .momentum = 0.8F,
                            .rest1 = static_cast<float>(1 - 0.85),
                            .beta2 = 0.97F,
                            .rest2 = static_cast<float>(1 - 0.97),
                            .root_factor = static_cast<float>(1 / std::sqrt(1 - 0.97)),
                            .epsilon = 1e-6F};
      optimizer_kernels(set).update(
          rule, {size, gradient.data(), tensor.value.data(), tensor.first.data(), tensor.second.data()});
      oracle.step(std::vector<double>(gradient.begin(), gradient.end()), rate);
      expect_near(tensor.value, oracle.value, 2e-6);
    }
  }
}

/// Which rows step `step` touches: some always, some seldom, the last one never.
std::vector<int64_t> touched(int64_t step, int64_t rows) {
  std::vector<int64_t> result;
  for (int64_t row = 0; row + 1 < rows; ++row) {
    if (step % (1 + row * row) == 0) result.push_back(row);
  }
  return result;
}

RowGradients<float> row_gradients(const std::vector<int64_t>& rows, int64_t width, int64_t step) {
  RowGradients<float> gradient{width, rows, {}};
  gradient.values = random_values<float>(static_cast<int64_t>(rows.size()) * width, 200 + step);
  return gradient;
}

constexpr int64_t kRows = 9;
constexpr int64_t kWidth = 5;

/// The part of `gradient` for a parameter of `width` values a row from `offset` on, with zeros for other
/// rows.
std::vector<double> spread(const RowGradients<float>& gradient, int64_t offset, int64_t width) {
  std::vector<double> dense(kRows * width);
  for (size_t i = 0; i < gradient.rows.size(); ++i) {
    for (int64_t u = 0; u < width; ++u) {
      dense[gradient.rows[i] * width + u] = gradient.values[i * gradient.width + offset + u];
    }
  }
  return dense;
}

// Gradients that depend on the values make a row that is read before it is caught up show.
TEST_P(ExactByRows, EqualTheDenseUpdatesOnceCaughtUp) {
  const OptimizerOptions options = options_of(GetParam());
  Tensor tensor(options, random_values<float>(kRows * kWidth, 1), kWidth);
  DenseOptimizer oracle = oracle_of(GetParam(), tensor.value);
  StepHistory history;
  ThreadPool pool(2);
  for (int64_t step = 1; step <= 60; ++step) {
    const std::vector<int64_t> rows = touched(step, kRows);
    catch_up(options, history, tensor.slot(), rows, pool);
    RowGradients<float> gradient = row_gradients(rows, kWidth + 2, step);
    RowGradients<float> exact = gradient;
    for (size_t i = 0; i < rows.size(); ++i) {
      for (int64_t u = 0; u < kWidth; ++u) {
        const int64_t at = rows[i] * kWidth + u;
        ASSERT_NEAR(tensor.value[at], oracle.value[at], 5e-6) << "read by step " << step;
        gradient.values[i * (kWidth + 2) + 1 + u] += tensor.value[at];
        exact.values[i * (kWidth + 2) + 1 + u] += static_cast<float>(oracle.value[at]);
      }
    }
    history.advance(rate_of(step));
    update_rows(options, history, tensor.slot(), gradient, 1, 1.0F, pool);
    oracle.step(spread(exact, 1, kWidth), rate_of(step));
  }
  catch_up_all(options, history, tensor.slot(), pool);
  expect_near(tensor.value, oracle.value, 1e-5);
  for (const int64_t stamp : tensor.stamps) EXPECT_EQ(stamp, 60);
}

TEST_P(Optimizer, UpdateOfAllRowsIsTheDenseUpdate) {
  const OptimizerOptions options = options_of(GetParam());
  const std::vector<float> start = random_values<float>(kRows * kWidth, 1);
  Tensor by_rows(options, start, kWidth);
  Tensor dense(options, start, 1);
  std::vector<int64_t> rows(kRows);
  std::iota(rows.begin(), rows.end(), 0);
  StepHistory history;
  ThreadPool pool(1);
  for (int64_t step = 1; step <= 5; ++step) {
    const RowGradients<float> gradient = row_gradients(rows, kWidth, step);
    history.advance(rate_of(step));
    update_rows(options, history, by_rows.slot(), gradient, 0, 0.5F, pool);
    update(options, history, dense.slot(), gradient.values, 0.5F, pool);
    ASSERT_EQ(by_rows.value, dense.value);
  }
}

TEST_P(Optimizer, SameBitsForAnyNumberOfThreads) {
  const OptimizerOptions options = options_of(GetParam());
  constexpr int64_t kMany = 700;
  constexpr int64_t kWide = 67;
  const auto train = [&](int threads) {
    ThreadPool pool(threads);
    Tensor tensor(options, random_values<float>(kMany * kWide, 1), kWide);
    StepHistory history;
    for (int64_t step = 1; step <= 6; ++step) {
      std::vector<int64_t> rows;
      for (int64_t row = step % 3; row < kMany; row += step) rows.push_back(row);
      history.advance(rate_of(step));
      update_rows(options, history, tensor.slot(), row_gradients(rows, kWide, step), 0, 1.0F, pool);
    }
    catch_up_all(options, history, tensor.slot(), pool);
    return tensor.value;
  };
  const std::vector<float> expected = train(1);
  EXPECT_EQ(expected, train(2));
  EXPECT_EQ(expected, train(3));
}

TEST_P(OnlyTouchedRows, Move) {
  const OptimizerOptions options = options_of(GetParam());
  Tensor tensor(options, random_values<float>(kRows * kWidth, 1), kWidth);
  const Tensor before = tensor;
  StepHistory history;
  history.advance(0.1);
  ThreadPool pool(1);
  update_rows(options, history, tensor.slot(), row_gradients({2, 7}, kWidth, 1), 0, 1.0F, pool);
  catch_up_all(options, history, tensor.slot(), pool);
  for (int64_t i = 0; i < kRows * kWidth; ++i) {
    const bool moved = i / kWidth == 2 || i / kWidth == 7;
    EXPECT_EQ(tensor.value[i] != before.value[i], moved) << i;
  }
}

/// A run of `steps` from a saved state goes on as if it had never stopped.
TEST_P(Optimizer, HistoryRestoredFromItsRatesGoesOnWithTheSameBits) {
  const OptimizerOptions options = options_of(GetParam());
  ThreadPool pool(1);
  Tensor tensor(options, random_values<float>(kRows * kWidth, 1), kWidth);
  StepHistory history;
  const auto run = [&](Tensor& t, StepHistory& h, int64_t from, int64_t to) {
    for (int64_t step = from; step <= to; ++step) {
      h.advance(rate_of(step));
      update_rows(options, h, t.slot(), row_gradients(touched(step, kRows), kWidth, step), 0, 1.0F, pool);
    }
  };
  run(tensor, history, 1, 20);
  Tensor restored = tensor;
  StepHistory restored_history(history.step(), {history.rates().begin(), history.rates().end()});
  run(tensor, history, 21, 40);
  run(restored, restored_history, 21, 40);
  catch_up_all(options, history, tensor.slot(), pool);
  catch_up_all(options, restored_history, restored.slot(), pool);
  EXPECT_EQ(tensor.value, restored.value);
  EXPECT_EQ(restored_history.step(), 40);
}

// SparseAdam: a row's moments stand still while it is not touched, the bias correction counts every step.
TEST(LazyAdam, MovesTouchedRowsOnlyWithTheCorrectionOfAllSteps) {
  const OptimizerOptions options{.kind = OptimizerKind::adam, .beta1 = 0.9, .beta2 = 0.99, .epsilon = 1e-8};
  Tensor tensor(options, {1.0F, 2.0F}, 1);
  StepHistory history;
  ThreadPool pool(1);
  history.advance(0.1);
  update_rows(options, history, tensor.slot(), {1, {0}, {0.5F}}, 0, 1.0F, pool);
  history.advance(0.1);
  update_rows(options, history, tensor.slot(), {1, {1}, {3.0F}}, 0, 1.0F, pool);
  history.advance(0.1);
  update_rows(options, history, tensor.slot(), {1, {0}, {-1.0F}}, 0, 1.0F, pool);

  const double m1 = 0.1 * 0.5;
  const double v1 = 0.01 * 0.25;
  const double first = 1.0 - 0.1 * (m1 / 0.1) / (std::sqrt(v1 / 0.01) + 1e-8);
  const double m3 = 0.9 * m1 + 0.1 * -1.0;
  const double v3 = 0.99 * v1 + 0.01;
  const double third =
      first - 0.1 * (m3 / (1 - std::pow(0.9, 3))) / (std::sqrt(v3 / (1 - std::pow(0.99, 3))) + 1e-8);
  EXPECT_NEAR(tensor.value[0], third, 1e-6);
  const double m2 = 0.1 * 3.0 / (1 - 0.81);
  const double v2 = 0.01 * 9.0 / (1 - 0.9801);
  EXPECT_NEAR(tensor.value[1], 2.0 - 0.1 * m2 / (std::sqrt(v2) + 1e-8), 1e-6);
}

TEST(LazyAdamW, DecaysUntouchedRowsExactly) {
  const OptimizerOptions options{.kind = OptimizerKind::adamw, .weight_decay = 0.5};
  Tensor tensor(options, {1.0F, 2.0F}, 1);
  StepHistory history;
  ThreadPool pool(1);
  double expected = 2.0;
  for (int64_t step = 1; step <= 7; ++step) {
    history.advance(rate_of(step));
    update_rows(options, history, tensor.slot(), {1, {0}, {0.5F}}, 0, 1.0F, pool);
    expected *= 1 - 0.5 * rate_of(step);
  }
  catch_up_all(options, history, tensor.slot(), pool);
  EXPECT_NEAR(tensor.value[1], expected, 1e-6);
}

TEST(StepHistory, ForgetsAllButTheCurrentRate) {
  StepHistory history;
  EXPECT_EQ(history.step(), 0);
  history.forget();
  history.advance(0.5);
  history.advance(0.25);
  EXPECT_EQ(history.step(), 2);
  EXPECT_EQ(history.learning_rate(1), 0.5);
  EXPECT_EQ(history.learning_rate(), 0.25);
  history.forget();
  EXPECT_EQ(history.oldest(), 2);
  ASSERT_EQ(history.rates().size(), 1);
  history.advance(0.125);
  EXPECT_EQ(history.learning_rate(2), 0.25);
  EXPECT_EQ(history.learning_rate(3), 0.125);
}

TEST(StepHistory, RowsOlderThanItsRatesAreRefused) {
  const OptimizerOptions options{.kind = OptimizerKind::momentum};
  Tensor tensor(options, {1.0F, 2.0F}, 1);
  StepHistory history;
  history.advance(0.5);
  history.advance(0.5);
  history.forget();
  ThreadPool pool(1);
  EXPECT_THROW(catch_up_all(options, history, tensor.slot(), pool), std::logic_error);
}

TEST(SumOfSquares, IsExactInDoubleAndTheSameForAnyNumberOfThreads) {
  for (const int64_t size : {0, 1, 7, 16384, 16385, 100003}) {
    const std::vector<float> x = random_values<float>(size, 4, 5);
    double expected = 0;
    for (const float value : x) expected += static_cast<double>(value) * value;
    ThreadPool one(1);
    ThreadPool three(3);
    const double got = sum_of_squares(x, one);
    EXPECT_NEAR(got, expected, 1e-12 * (1 + expected));
    EXPECT_EQ(got, sum_of_squares(x, three));
  }
}

TEST(SumOfSquares, HasTheSameBitsOnEveryInstructionSet) {
  for (const int64_t size : {0, 1, 31, 32, 77, 1003}) {
    const std::vector<float> x = random_values<float>(size, 9, 3);
    const double expected = optimizer_kernels(InstructionSet::portable).sum_of_squares(x.data(), size);
    for (const InstructionSet set : available_instruction_sets())
      EXPECT_EQ(optimizer_kernels(set).sum_of_squares(x.data(), size), expected) << name(set) << " " << size;
  }
}

}  // namespace
}  // namespace hsm::kernels
