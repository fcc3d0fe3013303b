#include <gtest/gtest.h>

#include "emulation/draw_harness.h"
#include "emulation/search_harness.h"
#include "emulation/thread_context.h"

namespace hsm::emulation {
namespace {

// Built with ThreadSanitizer; see head_races_test.cpp.
TEST(SearchRaces, None) {
  SearchCase c{{"company", 5, {7, 31, 20, 1}, 22, 9}, {2, 5, 2}, 6, 5};
  SearchRun<device::Fma<float>> run(c);
  const Options options;
  run.run([&]<class Body>(const auto& args) { emulate_threads<Body>(args, 2, options); });
  for (int query = 0; query < 3; ++query) {
    const auto want = run.dense(query);
    const auto got = run.best(query);
    for (size_t i = 0; i < want.size(); ++i) {
      EXPECT_NEAR(got[i].score, want[i].score, 1e-4);
      EXPECT_EQ(got[i].first, want[i].first);
    }
  }
}

TEST(DrawRaces, None) {
  const DrawCase c{{{"draws", 5, {7, 31, 20, 1}, 22, 5}, {5}}, 7, 1.4};
  DrawRun<device::Fma<float>> run(c);
  const Options options;
  run.run([&]<class Body>(const auto& args) { emulate_threads<Body>(args, 2, options); });
  for (int32_t draw = 0; draw < c.draws; ++draw) {
    EXPECT_EQ(run.drawn()[static_cast<size_t>(draw)].word, run.expected(draw).word);
  }
}

}  // namespace
}  // namespace hsm::emulation
