#include "classes/cluster_sizes.h"

#include <gtest/gtest.h>

#include <vector>

namespace hsm {
namespace {

const StepShape kStep{200, 400};
constexpr int64_t kTotal = 100'000;
constexpr double kPrice = 1e-6;

ClusterSizes priced() {
  ClusterSizes sizes(3, {.price = kPrice, .step = kStep}, kTotal);
  sizes.change(0, 40, 9'000);
  sizes.change(1, 5, 60);
  sizes.change(2, 1, 30'000);
  return sizes;
}

// What clusters cost for the tokens of a text, by the definition.
double fee(const std::vector<ClusterLoad>& loads) {
  double nanoseconds = 0;
  for (const ClusterLoad& load : loads) nanoseconds += expected_leaf_cost(kStep, load, kTotal);
  return kPrice * nanoseconds / static_cast<double>(kStep.tokens) * static_cast<double>(kTotal);
}

TEST(ClusterSizes, FeesArePriceTimesExpectedTime) {
  const double before = fee({{40, 9'000}, {5, 60}, {1, 30'000}});
  EXPECT_NEAR(priced().fees(), before, 1e-12 * before);
}

TEST(ClusterSizes, AWordPaysWhatItAdds) {
  ClusterSizes sizes = priced();
  for (const int64_t cluster : {0, 1, 2}) {
    const double without = sizes.fees();
    const double entry = sizes.entry_fee(cluster, 700);
    sizes.change(cluster, 1, 700);
    EXPECT_NEAR(sizes.fees() - without, entry, 1e-9 * without);
    EXPECT_DOUBLE_EQ(sizes.refund(cluster, 700), entry);
    sizes.change(cluster, -1, -700);
    EXPECT_NEAR(sizes.fees(), without, 1e-9 * without);
  }
}

TEST(ClusterSizes, FeesToFirstOrderAreNearThoseOfRareWords) {
  const ClusterSizes sizes = priced();
  for (const int64_t count : {0, 3, 16, 40}) {
    std::vector<double> gain{1, 2, 3};
    sizes.subtract_fees(count, gain);
    for (size_t c = 0; c < gain.size(); ++c) {
      const double entry = sizes.entry_fee(static_cast<int64_t>(c), count);
      EXPECT_NEAR(static_cast<double>(c + 1) - gain[c], entry, 0.05 * entry) << c << ", " << count;
    }
  }
}

TEST(ClusterSizes, WithoutAPriceNothingIsPaid) {
  ClusterSizes sizes(2, {.step = kStep}, kTotal);
  sizes.change(0, 40, 9'000);
  std::vector<double> gain{1, 2};
  sizes.subtract_fees(100, gain);
  EXPECT_EQ(gain, (std::vector<double>{1, 2}));
  EXPECT_EQ(sizes.fees(), 0);
  EXPECT_EQ(sizes.entry_fee(0, 5), 0);
  EXPECT_EQ(sizes.refund(0, 5), 0);
}

TEST(ClusterSizes, LimitWordsFromAboveAndBelow) {
  ClusterSizes sizes(2, {.largest = 3}, kTotal);
  sizes.change(0, 2, 10);
  sizes.change(1, 1, 10);
  EXPECT_TRUE(sizes.has_room(0));
  EXPECT_TRUE(sizes.can_lose(0));
  EXPECT_FALSE(sizes.can_lose(1));
  sizes.change(0, 1, 10);
  EXPECT_EQ(sizes.words(0), 3);
  EXPECT_FALSE(sizes.has_room(0));
  EXPECT_TRUE(ClusterSizes(1, {}, kTotal).has_room(0));
}

}  // namespace
}  // namespace hsm
