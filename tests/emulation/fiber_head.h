#pragma once
#include "emulation/fiber_context.h"
#include "emulation/head_kernels.h"

namespace hsm::emulation {

/// A whole pass of the head on fibers, each launch with at most `most_blocks` blocks.
template <class Kernels, class Context = FiberContext>
reference::HeadAnswer run_head(HeadRun<typename Kernels::Precision>& run, int most_blocks,
                               const Options& options) {
  return launch_head<Kernels>(
      run, [&]<class Body>(const auto& args) { emulate<Body, Context>(args, most_blocks, options); });
}

}  // namespace hsm::emulation
