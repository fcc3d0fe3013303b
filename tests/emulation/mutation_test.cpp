#include <gtest/gtest.h>

#include "emulation/fiber_head.h"
#include "emulation/head_bounds.h"

namespace hsm::emulation {
namespace {

using device::Fma;

constexpr int64_t kMostSteps = 3'000'000;  // several times what a block of these shapes needs

// Shapes that together meet every barrier and bounds test: several items a block, several tiles, rows and
// columns that end within a tile, more keys than the scan has threads.
std::vector<HeadCase> cases() {
  return {{"ragged", 9, {1, 7, 31, 1, 2, 45, 3}, 35, 70, 0.1},
          {"aligned", 20, {33, 18}, 36, 50},
          {"many_clusters", 2, std::vector<int64_t>(70, 2), 16, 40}};
}

/// What one pass with some sites dead gives away: a violation, or a difference from the oracle.
template <class Kernels>
std::string run_mutant(const HeadCase& c, const Options& options) {
  using P = typename Kernels::Precision;
  HeadRun<P> run(c.problem(), Kernels::tiles(), 1);
  cut_finely(run.plan());
  try {
    const auto got = run_head<Kernels>(run, 2, options);
    return compare_head(run.rounded(), got, 1, rounding_of<P>());
  } catch (const Violation& violation) {
    return violation.what();
  } catch (const std::out_of_range& wild) {
    return wild.what();  // a gradient row that is none
  }
}

template <class Kernels>
void check_mutants() {
  std::set<int> sites;
  for (const HeadCase& c : cases()) {
    ASSERT_EQ(run_mutant<Kernels>(c, {.visited = &sites}), "");
  }
  ASSERT_GT(sites.size(), 20U);
  for (const int site : sites) {
    std::string caught;
    for (uint64_t seed = 1; seed <= 40 && caught.empty(); ++seed) {
      for (const HeadCase& c : cases()) {
        if (caught.empty())
          caught = run_mutant<Kernels>(
              c, {.seed = seed, .layout_seed = seed, .dead_sites = {site}, .most_steps = kMostSteps});
      }
    }
    EXPECT_NE(caught, "") << "nothing changes without the barrier or bounds test of line " << (site & 0xFFF);
  }
}

// A barrier or bounds test that can go unnoticed is superfluous, or the emulator is blind.
TEST(Mutation, IsCaughtWhereTokensStayInSharedMemory) {
  check_mutants<TinyKernels<Fma<double>, true>>();
}
TEST(Mutation, IsCaughtWhereEverythingStreams) {
  check_mutants<TinyKernels<Fma<double>, false>>();
}
TEST(Mutation, IsCaughtWithOneStage) {
  check_mutants<TinyKernels<Fma<double>, false, 1>>();
}

}  // namespace
}  // namespace hsm::emulation
