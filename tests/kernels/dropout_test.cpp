#include "kernels/dropout.h"

#include <gtest/gtest.h>

#include <vector>

namespace hsm::kernels {
namespace {

std::vector<float> mask_of(DropoutShape shape, double probability, bool locked, DropoutKey key,
                           int threads = 1) {
  ThreadPool pool(threads);
  std::vector<float> values(static_cast<size_t>(shape.times * shape.streams * shape.units), 1.0F);
  apply_dropout(shape, probability, locked, key, values.data(), pool);
  return values;
}

TEST(Dropout, DropsTheAskedShareAndKeepsTheExpectation) {
  for (const double probability : {0.1, 0.5, 0.65}) {
    const auto mask = mask_of({50, 20, 203}, probability, false, {.seed = 3});
    double sum = 0;
    for (const float value : mask) {
      ASSERT_TRUE(value == 0.0F || value == static_cast<float>(1 / (1 - probability))) << value;
      sum += value;
    }
    EXPECT_NEAR(sum / static_cast<double>(mask.size()), 1.0, 0.01);
  }
}

TEST(Dropout, OfNothingChangesNothing) {
  EXPECT_EQ(mask_of({2, 3, 5}, 0.0, false, {}), std::vector<float>(30, 1.0F));
}

TEST(Dropout, DependsOnTheKeyAndThePlaceAlone) {
  const DropoutShape whole{7, 5, 37};
  const auto mask = mask_of(whole, 0.4, false, {.seed = 1, .step = 9, .layer = 1});
  EXPECT_EQ(mask, mask_of(whole, 0.4, false, {.seed = 1, .step = 9, .layer = 1}, 3));
  EXPECT_NE(mask, mask_of(whole, 0.4, false, {.seed = 2, .step = 9, .layer = 1}));
  EXPECT_NE(mask, mask_of(whole, 0.4, false, {.seed = 1, .step = 10, .layer = 1}));
  EXPECT_NE(mask, mask_of(whole, 0.4, false, {.seed = 1, .step = 9, .layer = 2}));
  EXPECT_NE(mask, mask_of(whole, 0.4, false,
                          {.seed = 1, .purpose = Purpose::dropout_input, .step = 9, .layer = 1}));
  // A shorter window has the same masks at the times that it has.
  const auto shorter = mask_of({3, 5, 37}, 0.4, false, {.seed = 1, .step = 9, .layer = 1});
  EXPECT_TRUE(std::equal(shorter.begin(), shorter.end(), mask.begin()));
}

TEST(Dropout, LockedSharesOneMaskOverTime) {
  constexpr int64_t kRow = 4 * 33;
  const auto mask = mask_of({6, 4, 33}, 0.5, true, {.seed = 5});
  for (int64_t time = 1; time < 6; ++time) {
    EXPECT_TRUE(std::equal(mask.begin(), mask.begin() + kRow, mask.begin() + time * kRow));
  }
  EXPECT_FALSE(std::equal(mask.begin(), mask.begin() + 33, mask.begin() + 33)) << "streams differ";
}

}  // namespace
}  // namespace hsm::kernels
