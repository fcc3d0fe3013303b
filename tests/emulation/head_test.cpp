#include <gtest/gtest.h>

#include <algorithm>
#include <numeric>

#include "emulation/fiber_head.h"
#include "emulation/head_bounds.h"

namespace hsm::emulation {
namespace {

using device::Bf16;
using device::Fma;
using device::Fp16;
using device::Tf32;

std::vector<HeadCase> cases() {
  const std::vector<int64_t> ragged{1, 7, 31, 1, 2, 75, 3};
  return {
      {"one_token", 3, ragged, 7, 1},
      {"one_value_wide", 5, ragged, 1, 40},
      {"no_shortlist", 0, ragged, 33, 61},
      {"everything_in_the_shortlist", 53, {}, 33, 29},
      {"one_cluster_without_shortlist", 0, {41}, 7, 30},
      {"one_cluster_and_shortlist", 2, {41}, 8, 30},
      {"one_cluster_of_one_word", 4, {1}, 7, 30},
      {"all_clusters_of_one_word", 0, {1, 1, 1, 1, 1}, 7, 30},
      {"two_words_in_a_cluster", 0, {2}, 7, 11},
      {"two_words_in_the_shortlist", 2, {}, 16, 11},
      {"whole_tiles", 32, {16, 32, 16}, 64, 64},
      {"wide", 11, ragged, 60, 97},
      {"all_in_one_cluster", 3, {5, 60, 9}, 40, 90, 0, 1},
      {"ignored_targets", 9, ragged, 24, 90, 0.3},
      {"nothing_but_ignored", 9, ragged, 33, 6, 1},
      {"large_logits", 9, ragged, 24, 40, 0, -1, 6},
  };
}

class HeadKernelsTest : public ::testing::TestWithParam<HeadCase> {};

/// One pass under one schedule; the message names what differs from the oracle.
template <class Kernels>
void check(const HeadCase& c, bool finely, int most_blocks, uint64_t seed) {
  using P = typename Kernels::Precision;
  constexpr double kScale = 0.37;
  HeadRun<P> run(c.problem(), Kernels::tiles(), kScale);
  if (finely) cut_finely(run.plan());
  const auto got = run_head<Kernels>(run, most_blocks, {.seed = seed, .layout_seed = seed});
  EXPECT_EQ(compare_head(run.rounded(), got, static_cast<double>(static_cast<typename P::Sum>(kScale)),
                         rounding_of<P>()),
            "")
      << "seed " << seed << ", " << most_blocks << " blocks";
}

template <class P>
void check_all(const HeadCase& c) {
  check<TinyKernels<P, true>>(c, false, 1000, 1);
  check<TinyKernels<P, true>>(c, true, 2, 2);
  check<TinyKernels<P, false>>(c, true, 3, 3);
  check<TinyKernels<P, false, 1>>(c, false, 1, 4);
}

TEST_P(HeadKernelsTest, EqualsTheOracleInDouble) {
  check_all<Fma<double>>(GetParam());
}
TEST_P(HeadKernelsTest, EqualsTheOracleInFp32) {
  check_all<Fma<float>>(GetParam());
}
TEST_P(HeadKernelsTest, EqualsTheOracleInTf32) {
  check_all<Tf32>(GetParam());
}
TEST_P(HeadKernelsTest, EqualsTheOracleInBf16) {
  check_all<Bf16>(GetParam());
}
TEST_P(HeadKernelsTest, EqualsTheOracleInFp16) {
  check_all<Fp16>(GetParam());
}

INSTANTIATE_TEST_SUITE_P(Shapes, HeadKernelsTest, ::testing::ValuesIn(cases()),
                         [](const auto& test) { return test.param.name; });

// The tiles that ship, on shapes that fill one and begin another.
template <class P, device::HeadVariant V>
void check_shipped(int64_t dim) {
  using Shapes = device::HeadShapes<P, V>;
  using Kernels = HeadKernels<P, typename Shapes::Root, typename Shapes::Leaf, typename Shapes::Backward, 64>;
  check<Kernels>({"shipped", 40, {140, 1, 33}, dim, 70}, false, 2, 1);
}
TEST(HeadShippedTiles, EqualTheOracle) {
  check_shipped<Bf16, device::HeadVariant::resident_256>(72);
  check_shipped<Bf16, device::HeadVariant::resident_512>(264);
  check_shipped<Bf16, device::HeadVariant::streamed>(520);
  check_shipped<Fp16, device::HeadVariant::resident_256>(41);
  check_shipped<Tf32, device::HeadVariant::resident_256>(72);
  check_shipped<Tf32, device::HeadVariant::streamed>(260);
  check_shipped<Fma<float>, device::HeadVariant::resident_256>(41);
  check_shipped<Fma<float>, device::HeadVariant::resident_512>(260);
}

TEST(HeadBucket, SortsTokensStablyByKey) {
  for (const HeadCase& c : cases()) {
    for (const bool finely : {false, true}) {
      using Kernels = TinyKernels<Fma<float>, true>;
      HeadRun<Fma<float>> run(c.problem(), Kernels::tiles(), 1);
      if (finely) cut_finely(run.plan());
      run_head<Kernels>(run, 2, {.seed = 5});
      std::vector<int32_t> want(run.order().size());
      std::iota(want.begin(), want.end(), 0);
      const auto keys = run.keys();
      std::ranges::stable_sort(want, {}, [&](int32_t token) { return keys[static_cast<size_t>(token)]; });
      EXPECT_EQ(run.order(), want) << c.name;
    }
  }
}

TEST(HeadBucket, GivesGradientRowsToTheShortlistAndTheHitClustersAlone) {
  HeadCase c{"hit", 4, {3, 5, 1, 6, 2}, 8, 20, 0, 3};
  using Kernels = TinyKernels<Fma<float>, true>;
  HeadRun<Fma<float>> run(c.problem(), Kernels::tiles(), 1);
  run_head<Kernels>(run, 2, {});
  EXPECT_EQ(run.word_rows(), (std::vector<int32_t>{0, 1, 2, 3, 13, 14, 15, 16, 17, 18}));
}

TEST(HeadKernels, GiveTheSameBitsUnderEverySchedule) {
  HeadCase c{"schedules", 9, {1, 7, 31, 1, 2, 75, 3}, 33, 61, 0.1};
  using Kernels = TinyKernels<Bf16, false>;
  const auto run_with = [&](int most_blocks, uint64_t seed) {
    HeadRun<Bf16> run(c.problem(), Kernels::tiles(), 0.5);
    cut_finely(run.plan());
    return run_head<Kernels>(run, most_blocks, {.seed = seed});
  };
  const auto first = run_with(1, 1);
  for (uint64_t seed = 2; seed < 10; ++seed) {
    const auto again = run_with(static_cast<int>(seed), seed);
    EXPECT_EQ(again.loss, first.loss);
    EXPECT_EQ(again.hidden, first.hidden);
    EXPECT_EQ(again.word, first.word);
    EXPECT_EQ(again.word_bias, first.word_bias);
    EXPECT_EQ(again.cluster, first.cluster);
    EXPECT_EQ(again.cluster_bias, first.cluster_bias);
  }
}

}  // namespace
}  // namespace hsm::emulation
