#include "base/thread_pool.h"

#include <gtest/gtest.h>

#include <atomic>
#include <numeric>
#include <stdexcept>
#include <vector>

#include "base/error.h"

namespace hsm {
namespace {

TEST(ThreadPool, RunsEachItemOnceWithAValidWorker) {
  for (const int threads : {1, 2, 3, 8}) {
    ThreadPool pool(threads);
    EXPECT_EQ(pool.threads(), threads);
    for (const int64_t count : {0, 1, 2, 7, 1000}) {
      std::vector<std::atomic<int>> seen(static_cast<size_t>(count));
      pool.run(count, [&](int64_t item, int worker) {
        EXPECT_GE(worker, 0);
        EXPECT_LT(worker, threads);
        seen[static_cast<size_t>(item)].fetch_add(1);
      });
      for (const auto& times : seen) EXPECT_EQ(times.load(), 1);
    }
  }
}

TEST(ThreadPool, SurvivesThousandsOfShortLoopsAndIdlePauses) {
  ThreadPool pool(3);
  std::atomic<int64_t> sum{0};
  for (int loop = 0; loop < 5000; ++loop) {
    pool.run(4, [&](int64_t item, int) { sum.fetch_add(item); });
  }
  EXPECT_EQ(sum.load(), 5000 * 6);
}

TEST(ThreadPool, RethrowsTheErrorOfAnItemAndGoesOnWorking) {
  ThreadPool pool(2);
  EXPECT_THROW(pool.run(100,
                        [](int64_t item, int) {
                          if (item == 3) throw std::runtime_error("item 3");
                        }),
               std::runtime_error);
  std::atomic<int> done{0};
  pool.run(10, [&](int64_t, int) { ++done; });
  EXPECT_EQ(done.load(), 10);
}

TEST(ThreadPool, RefusesLessThanOneThread) {
  EXPECT_THROW(ThreadPool(0), UsageError);
}

}  // namespace
}  // namespace hsm
