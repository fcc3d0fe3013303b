#include "kernels/vector_math.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/random_values.h"
#include "kernels/vector_math_kernels.h"

namespace hsm::kernels {
namespace {

using test::random_values;

constexpr float kInfinity = std::numeric_limits<float>::infinity();
constexpr float kNan = std::numeric_limits<float>::quiet_NaN();

/// Numbers of every magnitude and both signs up to `most`, and a fine grid near 0.
std::vector<float> sweep(double most) {
  std::vector<float> x{0.0F, -0.0F, 1e-38F, -1e-42F};
  for (double v = 1e-20; v < most; v *= 1.0007) {
    x.push_back(static_cast<float>(v));
    x.push_back(static_cast<float>(-v));
  }
  for (double v = -most; v < most; v += most / 20011) x.push_back(static_cast<float>(v));
  return x;
}

template <class Body>
void for_sets(Body body) {
  for (const InstructionSet set : available_instruction_sets()) {
    SCOPED_TRACE(name(set));
    body(vector_math_kernels<float>(set), vector_math_kernels<double>(set));
  }
}

void expect_relative(float got, double expected, double tolerance, float x) {
  ASSERT_LE(std::abs(got - expected), tolerance * std::abs(expected) + 1.5e-45) << "at " << x;
}

TEST(VectorMath, ExpIsAccurateOverItsWholeRange) {
  for_sets([](const auto& kernels, const auto&) {
    const std::vector<float> x = sweep(110);
    std::vector<float> y = x;
    kernels.exp_minus(y.data(), static_cast<int64_t>(y.size()), 0.0F);
    for (size_t i = 0; i < x.size(); ++i) {
      const double expected = std::exp(static_cast<double>(x[i]));
      if (expected > std::numeric_limits<float>::max()) {
        ASSERT_EQ(y[i], kInfinity) << x[i];
      } else {
        expect_relative(y[i], expected, 4e-7, x[i]);
      }
    }
  });
}

TEST(VectorMath, TanhAndSigmoidAreAccurate) {
  for_sets([](const auto& kernels, const auto&) {
    const std::vector<float> x = sweep(110);
    std::vector<float> t = x;
    std::vector<float> s = x;
    kernels.tanh_inplace(t.data(), static_cast<int64_t>(t.size()));
    kernels.sigmoid_inplace(s.data(), static_cast<int64_t>(s.size()));
    for (size_t i = 0; i < x.size(); ++i) {
      const double v = x[i];
      expect_relative(t[i], std::tanh(v), 4e-7, x[i]);
      ASSERT_LE(std::abs(t[i]), 1.0F);
      ASSERT_EQ(std::signbit(t[i]), std::signbit(x[i]));
      expect_relative(s[i], 1 / (1 + std::exp(-v)), 5e-7, x[i]);
      ASSERT_LE(s[i], 1.0F);
    }
  });
}

TEST(VectorMath, InfinitiesAndNanPass) {
  for_sets([](const auto& kernels, const auto&) {
    std::vector<float> e{kInfinity, -kInfinity, kNan};
    std::vector<float> t = e;
    std::vector<float> s = e;
    kernels.exp_minus(e.data(), 3, 0.0F);
    kernels.tanh_inplace(t.data(), 3);
    kernels.sigmoid_inplace(s.data(), 3);
    EXPECT_EQ(e[0], kInfinity);
    EXPECT_EQ(e[1], 0.0F);
    EXPECT_TRUE(std::isnan(e[2]));
    EXPECT_EQ(t[0], 1.0F);
    EXPECT_EQ(t[1], -1.0F);
    EXPECT_TRUE(std::isnan(t[2]));
    EXPECT_EQ(s[0], 1.0F);
    EXPECT_EQ(s[1], 0.0F);
    EXPECT_TRUE(std::isnan(s[2]));

    const std::vector<float> nothing{-kInfinity, -kInfinity};
    EXPECT_EQ(kernels.log_sum_exp(nothing.data(), 2), -kInfinity);
    EXPECT_EQ(kernels.log_sum_exp(nothing.data(), 0), -kInfinity);
    for (const size_t place : {size_t{0}, size_t{15}, size_t{32}}) {
      std::vector<float> x(33, 1.0F);
      x[place] = kNan;
      EXPECT_TRUE(std::isnan(kernels.log_sum_exp(x.data(), 33))) << place;
      x[place] = -kInfinity;
      EXPECT_NEAR(kernels.log_sum_exp(x.data(), 33), 1.0 + std::log(32.0), 1e-6) << place;
      x[place] = kInfinity;
      EXPECT_EQ(kernels.log_sum_exp(x.data(), 33), kInfinity) << place;
    }
  });
}

TEST(VectorMath, ElementsDoNotDependOnTheirPlace) {
  for_sets([](const auto& kernels, const auto&) {
    const std::vector<float> x = random_values<float>(67, 5, 9.0);
    const auto check = [&](const auto& function) {
      std::vector<float> whole = x;
      function(whole.data(), 67);
      for (int64_t i = 0; i < 67; ++i) {
        float alone = x[i];
        function(&alone, 1);
        ASSERT_EQ(alone, whole[i]) << i;
      }
    };
    check([&](float* v, int64_t n) { kernels.exp_minus(v, n, 0.75F); });
    check([&](float* v, int64_t n) { kernels.tanh_inplace(v, n); });
    check([&](float* v, int64_t n) { kernels.sigmoid_inplace(v, n); });
  });
}

TEST(VectorMath, LogSumExpAndLogSoftmaxAgreeWithDouble) {
  for_sets([](const auto& floats, const auto& doubles) {
    for (const int64_t n : {1, 2, 15, 16, 17, 33, 1009}) {
      for (const double scale : {0.1, 8.0, 300.0}) {
        const std::vector<float> x = random_values<float>(n, 7 + n, scale);
        const std::vector<double> wide(x.begin(), x.end());
        double most = wide[0];
        for (const double v : wide) most = std::max(most, v);
        double sum = 0;
        for (const double v : wide) sum += std::exp(v - most);
        const double expected = most + std::log(sum);
        EXPECT_NEAR(floats.log_sum_exp(x.data(), n), expected, 1e-6 + 1.5e-7 * std::abs(expected));
        EXPECT_NEAR(doubles.log_sum_exp(wide.data(), n), expected, 1e-13 * (1 + std::abs(expected)));
        std::vector<float> y = x;
        floats.log_softmax(y.data(), n);
        double total = 0;
        for (int64_t i = 0; i < n; ++i) {
          ASSERT_NEAR(y[i], wide[i] - expected, 2e-6 + 3e-7 * scale);
          ASSERT_LE(y[i], 0.0F);
          total += std::exp(static_cast<double>(y[i]));
        }
        EXPECT_NEAR(total, 1.0, 1e-6 + 3e-7 * scale);
      }
    }
  });
}

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

template <class T>
void check_cells(const VectorMathKernels<T>& kernels, double tolerance) {
  for (const int64_t hidden : {1, 7, 16, 33, 200}) {
    const std::vector<T> gates = random_values<T>(4 * hidden, 11, 6.0);
    const std::vector<T> other = random_values<T>(3 * hidden, 12, 6.0);
    const std::vector<T> c0 = random_values<T>(hidden, 13, 3.0);
    const std::vector<T> h0 = random_values<T>(hidden, 14);
    std::vector<T> c = c0;
    std::vector<T> h = h0;
    kernels.lstm_pointwise(gates.data(), hidden, c.data(), h.data());
    std::vector<T> g = h0;
    kernels.gru_pointwise(gates.data(), other.data(), hidden, g.data());
    for (int64_t u = 0; u < hidden; ++u) {
      const auto gate = [&](int64_t k) { return static_cast<double>(gates[k * hidden + u]); };
      const auto from_hidden = [&](int64_t k) { return static_cast<double>(other[k * hidden + u]); };
      const double cell = sigmoid(gate(1)) * c0[u] + sigmoid(gate(0)) * std::tanh(gate(2));
      ASSERT_NEAR(c[u], cell, tolerance);
      ASSERT_NEAR(h[u], sigmoid(gate(3)) * std::tanh(cell), tolerance);
      const double reset = sigmoid(gate(0) + from_hidden(0));
      const double keep = sigmoid(gate(1) + from_hidden(1));
      const double fresh = std::tanh(gate(2) + reset * from_hidden(2));
      ASSERT_NEAR(g[u], (1 - keep) * fresh + keep * h0[u], tolerance);
    }
  }
}

TEST(VectorMath, CellsFollowTheirFormula) {
  for_sets([](const auto& floats, const auto& doubles) {
    check_cells<float>(floats, 2e-6);
    check_cells<double>(doubles, 1e-14);
  });
}

}  // namespace
}  // namespace hsm::kernels
