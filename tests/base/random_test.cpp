#include "base/random.h"

#include <gtest/gtest.h>

#include <cmath>
#include <set>

namespace hsm {
namespace {

// Known answers published with the Random123 library.
TEST(Philox, GivesThePublishedKnownAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}),
            (std::array<uint32_t, 4>{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  EXPECT_EQ(philox({0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff}, {0xffffffff, 0xffffffff}),
            (std::array<uint32_t, 4>{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (std::array<uint32_t, 4>{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(CounterRandom, IsUniformAndDiffersBySeedPurposeAndPosition) {
  const CounterRandom random(7, Purpose::shuffle);
  double sum = 0;
  double squares = 0;
  std::set<uint64_t> seen;
  constexpr int kDraws = 20000;
  for (uint64_t i = 0; i < kDraws; ++i) {
    const double u = random.uniform(i / 100, i % 100);
    ASSERT_GE(u, 0);
    ASSERT_LT(u, 1);
    sum += u;
    squares += u * u;
    seen.insert(random.bits(i / 100, i % 100));
  }
  EXPECT_NEAR(sum / kDraws, 0.5, 0.01);
  EXPECT_NEAR(squares / kDraws, 1.0 / 3, 0.01);
  EXPECT_EQ(seen.size(), static_cast<size_t>(kDraws));
  EXPECT_NE(random.bits(0, 0), CounterRandom(8, Purpose::shuffle).bits(0, 0));
  EXPECT_NE(random.bits(0, 0), CounterRandom(7, Purpose::sampling).bits(0, 0));
  EXPECT_EQ(random.bits(3, 4), CounterRandom(7, Purpose::shuffle).bits(3, 4));
}

TEST(CounterRandom, BelowStaysBelowAndReachesEveryValue) {
  const CounterRandom random(1, Purpose::shuffle);
  std::array<int, 7> times{};
  for (uint64_t i = 0; i < 7000; ++i) ++times.at(random.below(7, 0, i));
  for (const int count : times) EXPECT_NEAR(count, 1000, 150);
  EXPECT_EQ(random.below(1, 5, 5), 0U);
}

}  // namespace
}  // namespace hsm
