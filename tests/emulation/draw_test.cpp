#include <gtest/gtest.h>

#include "emulation/draw_harness.h"
#include "emulation/fiber_context.h"

namespace hsm::emulation {
namespace {

using device::Fma;

template <class P>
int run_draws(DrawRun<P>& run, int most_blocks, const Options& options) {
  return run.run([&]<class Body>(const auto& args) { emulate<Body>(args, most_blocks, options); });
}

const std::vector<int64_t> kRagged{1, 7, 31, 1, 2, 75, 3, 40};

std::vector<DrawCase> cases() {
  std::vector<DrawCase> cases;
  for (const double temperature : {0.5, 1.0, 1.7}) {
    cases.push_back({{{"ragged", 5, kRagged, 24, 4}, {4}}, 12, temperature});
    cases.push_back({{{"forbidden", 5, kRagged, 24, 3, 0, -1, 0.3}, {3}, 4, 4, 0, {3, 10, 17, 31, 45}},
                     12,
                     temperature,
                     false});
    cases.push_back({{{"no_clusters", 50, {}, 8, 2}, {2}}, 5, temperature});
    cases.push_back(
        {{{"more_clusters_than_threads", 1, std::vector<int64_t>(75, 2), 8, 2}, {2}}, 9, temperature});
  }
  return cases;
}

template <class P>
std::string difference(DrawRun<P>& run, int32_t draws, double tolerance) {
  for (int32_t draw = 0; draw < draws; ++draw) {
    const device::DrawnWord want = run.expected(draw);
    const device::DrawnWord& got = run.drawn()[static_cast<size_t>(draw)];
    if (got.word != want.word) return "word of draw " + std::to_string(draw);
    if (got.proposals != want.proposals) return "proposals of draw " + std::to_string(draw);
    if (want.word >= 0 && !(std::abs(got.log_prob - want.log_prob) <= tolerance))
      return "log-probability of draw " + std::to_string(draw);
  }
  return "";
}

TEST(DeviceDraw, DrawsWhatTheDefinitionSays) {
  for (const DrawCase& c : cases()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) {
      DrawRun<Fma<double>> run(c);
      run_draws(run, 2, {.seed = seed, .layout_seed = seed});
      EXPECT_EQ(difference(run, c.draws, 1e-9), "") << c.search.head.name << " at " << c.temperature;
    }
  }
}

TEST(DeviceDraw, DrawsItInFp32) {
  for (const DrawCase& c : cases()) {
    DrawRun<Fma<float>> run(c);
    run_draws(run, 3, {.seed = 4});
    EXPECT_EQ(difference(run, c.draws, 1e-5), "") << c.search.head.name << " at " << c.temperature;
  }
}

// Where the leaves of a cluster are forbidden, its bound is too high, and others take its place.
TEST(DeviceDraw, ProposesAgainWhereAClusterIsRejected) {
  DrawCase c{{{"rejections", 1, {6, 6}, 8, 2, 0, -1, 0.1}, {2}}, 12};
  for (int32_t word_row = 1; word_row < 12; ++word_row)
    if (word_row != 3) c.search.forbidden.push_back((word_row * 7 + 3) % 13);
  DrawRun<Fma<double>> run(c);
  EXPECT_GT(run_draws(run, 2, {}), 1);
  EXPECT_EQ(difference(run, c.draws, 1e-9), "");
}

TEST(DeviceDraw, FindsThatNothingMayBeDrawn) {
  DrawCase c{{{"nothing", 1, {3, 1}, 8, 2}, {2}}, 3};
  c.end_allowed = false;
  c.search.forbidden = {0, 1, 2, 3, 4};
  DrawRun<Fma<float>> run(c);
  run_draws(run, 1, {});
  for (const auto& drawn : run.drawn()) EXPECT_EQ(drawn.word, device::kNothing);
}

TEST(DeviceDraw, ShowsScoresThatAreNotNumbers) {
  DrawCase c{{{"nan", 0, {8}, 8, 2}, {2}, 4, 4, -1}, 2};
  DrawRun<Fma<float>> row(c);
  row.search().spoil_row(0);
  run_draws(row, 1, {});
  EXPECT_TRUE(std::isnan(row.drawn()[0].log_prob));
  EXPECT_FALSE(std::isnan(row.drawn()[1].log_prob));
  DrawRun<Fma<float>> leaf(c);
  leaf.search().spoil_word(3);
  run_draws(leaf, 1, {});
  for (const auto& drawn : leaf.drawn()) EXPECT_TRUE(std::isnan(drawn.log_prob));
}

TEST(DeviceDraw, NeedsEachBarrierAndBoundsTest) {
  const std::vector<DrawCase> small{
      {{{"company", 5, {7, 31, 20, 1}, 22, 9}, {9}}, 11, 1.3},
      {{{"many", 1, std::vector<int64_t>(70, 3), 8, 3, 0, -1, 0.1}, {3}, 4, 4, 0, {5, 6, 9}},
       10,
       0.7,
       false}};
  const auto outcome = [&](const DrawCase& c, const Options& options) -> std::string {
    try {
      DrawRun<Fma<double>> run(c);
      run.run([&]<class Body>(const auto& args) {
        // The search's kernels are mutated in its own test.
        constexpr bool ours = std::is_same_v<decltype(args), const device::DrawArgs<Fma<double>>&>;
        emulate<Body>(args, 2, ours ? options : Options{});
      });
      return difference(run, c.draws, 1e-9);
    } catch (const Violation& violation) {
      return violation.what();
    }
  };
  std::set<int> sites;
  for (const DrawCase& c : small) ASSERT_EQ(outcome(c, {.visited = &sites}), "");
  ASSERT_GE(sites.size(), 2U);
  for (const int site : sites) {
    std::string caught;
    for (uint64_t seed = 1; seed <= 40 && caught.empty(); ++seed) {
      for (const DrawCase& c : small) {
        if (caught.empty())
          caught =
              outcome(c, {.seed = seed, .layout_seed = seed, .dead_sites = {site}, .most_steps = 3'000'000});
      }
    }
    EXPECT_NE(caught, "") << "nothing changes without the barrier or bounds test of line " << (site & 0xFFF);
  }
}

}  // namespace
}  // namespace hsm::emulation
