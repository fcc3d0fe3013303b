#include "eval/scale_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <optional>
#include <vector>

namespace hsm {
namespace {

/// Asks until the search is settled; how often it asked.
int run(ScaleSearch& search, const std::function<double(double)>& function) {
  int asked = 0;
  for (auto scale = search.next(); scale && asked < 50; scale = search.next()) {
    search.add(*scale, function(*scale));
    ++asked;
  }
  return asked;
}

// Negative log-probability of some words with these logits, scaled: what the search is for.
double loss(double scale, double surest) {
  double sum = 0;
  for (const auto& [right, other] : {std::pair(surest, 0.0), {1.0, 2.5}, {3.0, 0.5}, {-0.5, 0.0}}) {
    sum += std::log(std::exp(scale * right) + std::exp(scale * other)) - scale * right;
  }
  return sum;
}

double least_on_a_grid(const std::function<double(double)>& function) {
  double best = 0;
  for (int step = -15'000; step < 10'000; ++step) {
    const double scale = std::pow(1.0002, step);
    if (best == 0 || function(scale) < function(best)) best = scale;
  }
  return best;
}

TEST(ScaleSearch, FindsTheLeastValueInFewSteps) {
  for (const double surest : {0.2, 0.5, 1.0, 2.0, 3.5}) {
    const auto function = [&](double scale) { return loss(scale, surest); };
    ScaleSearch search;
    EXPECT_LE(run(search, function), 16) << surest;
    const double best = least_on_a_grid(function);
    EXPECT_NEAR(search.best(), best, 0.03 * best) << surest;
  }
  for (const double minimum : {0.3, 0.79, 0.81, 0.9, 0.999, 1.0, 1.1, 1.25, 3.0}) {
    const auto function = [&](double scale) { return scale / minimum - std::log(scale); };
    ScaleSearch search;
    EXPECT_LE(run(search, function), minimum > 0.7 && minimum < 1.3 ? 6 : 12) << minimum;
    EXPECT_NEAR(search.best(), minimum, 0.02 * minimum);
  }
}

TEST(ScaleSearch, StartsAtOneAndStaysThereWhereNothingDependsOnTheScale) {
  ScaleSearch search;
  EXPECT_EQ(search.next(), 1);
  EXPECT_LE(run(search, [](double) { return 7.0; }), 4);
  EXPECT_EQ(search.best(), 1);
}

TEST(ScaleSearch, GoesOnOutwardsAsLongAsThatHelps) {
  // The best scale is out of reach, at 0.
  ScaleSearch search;
  double last = 2;
  for (int i = 0; i < 12; ++i) {
    const std::optional<double> next = search.next();
    ASSERT_TRUE(next);
    EXPECT_LT(*next, last);
    last = *next;
    search.add(*next, std::sqrt(*next));
    EXPECT_EQ(search.best(), *next);
  }
  EXPECT_LT(last, 0.2);
}

TEST(ScaleSearch, StaysAtOneWhereValuesAreNoNumbers) {
  ScaleSearch search;
  EXPECT_LE(run(search, [](double) { return std::nan(""); }), 4);
  EXPECT_EQ(search.best(), 1);
}

}  // namespace
}  // namespace hsm
