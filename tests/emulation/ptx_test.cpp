#include <gtest/gtest.h>

#include "emulation/fiber_head.h"
#include "emulation/head_bounds.h"
#include "emulation/ptx_context.h"

namespace hsm::emulation {
namespace {

// With the instructions' own lane layouts, all the head's kernels still agree with the oracle.
template <class P>
class PtxLayout : public ::testing::Test {};
using TensorPrecisions = ::testing::Types<device::Bf16, device::Fp16, device::Tf32>;
TYPED_TEST_SUITE(PtxLayout, TensorPrecisions);

template <class Kernels>
std::string run_case(const HeadCase& c) {
  using P = typename Kernels::Precision;
  HeadRun<P> run(c.problem(), Kernels::tiles(), 1);
  cut_finely(run.plan());
  const auto got = run_head<Kernels, PtxContext>(run, 2, {.seed = 3, .layout_seed = 3});
  return compare_head(run.rounded(), got, 1, rounding_of<P>());
}

TYPED_TEST(PtxLayout, GivesTheOraclesAnswer) {
  const HeadCase c{"ragged", 9, {1, 7, 31, 2}, 40, 45, 0.1};
  const auto resident = run_case<TinyKernels<TypeParam, true>>(c);
  EXPECT_EQ(resident, "");
  const auto streamed = run_case<TinyKernels<TypeParam, false>>(c);
  EXPECT_EQ(streamed, "");
}

}  // namespace
}  // namespace hsm::emulation
