#include <gtest/gtest.h>

#include <cstdlib>

#include "emulation/head_bounds.h"
#include "emulation/head_kernels.h"
#include "emulation/thread_context.h"

namespace hsm::emulation {
namespace {

// Built with ThreadSanitizer, which ends the program when two lanes meet in memory without a barrier between.
template <class Kernels>
void check(const HeadCase& c) {
  using P = typename Kernels::Precision;
  HeadRun<P> run(c.problem(), Kernels::tiles(), 1);
  cut_finely(run.plan());
  const Options options;
  const auto got = launch_head<Kernels>(
      run, [&]<class Body>(const auto& args) { emulate_threads<Body>(args, 2, options); });
  EXPECT_EQ(compare_head(run.rounded(), got, 1, rounding_of<P>()), "") << c.name;
}

TEST(HeadRaces, NoneWhereTokensStayInSharedMemory) {
  check<TinyKernels<device::Bf16, true>>({"ragged", 9, {1, 7, 31, 1, 2}, 33, 45, 0.1});
}
TEST(HeadRaces, NoneWhereEverythingStreams) {
  check<TinyKernels<device::Fma<float>, false>>({"aligned", 3, {18, 33}, 36, 40});
}
TEST(HeadRaces, NoneWithOneStage) {
  check<TinyKernels<device::Fp16, false, 1>>({"all_in_one_cluster", 3, {5, 30}, 24, 35, 0, 1});
}
TEST(HeadRaces, NoneWithMoreKeysThanThreads) {
  check<TinyKernels<device::Tf32, true>>({"many_clusters", 2, std::vector<int64_t>(70, 2), 8, 33});
}

// The sanitizer does see the lanes: without barriers it reports them.
TEST(HeadRacesDeathTest, AreReportedWithoutBarriers) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  using Kernels = TinyKernels<device::Bf16, true>;
  const auto run_without_barriers = [] {
    Options options;
    options.without_barriers = true;
    HeadRun<device::Bf16> run(HeadCase{"ragged", 9, {7, 31}, 33, 45}.problem(), Kernels::tiles(), 1);
    run.prepare();
    emulate_threads<Kernels::Count>(run.args(), 1, options);
    std::exit(0);
  };
  EXPECT_EXIT(
      run_without_barriers(), [](int status) { return status != 0; }, "data race");
}

}  // namespace
}  // namespace hsm::emulation
