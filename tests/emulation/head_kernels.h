#pragma once
#include "emulation/head_harness.h"

namespace hsm::emulation {

/// Tiles as small as they can be, so that small shapes have many of them. Resident: hidden states (or X) stay
/// in shared memory, for D ≤ 64; else everything streams.
template <class P, bool Resident, int Stages = 2>
using TinyKernels =
    HeadKernels<P, device::ForwardShape<16, 32, 16, 1, 2, Stages + 1, (Resident ? 64 : 0)>,
                device::ForwardShape<16, 16, 16, 1, 1, 2, (Resident ? 64 : 0)>,
                device::BackwardShape<16, 16, (Resident ? 64 : 32), 1, 1, 2, Stages, Resident>, 64>;

/// A whole pass: bucket, forward, backward. `launch.operator()<Body>(args)` runs one kernel.
template <class Kernels, class Launch>
reference::HeadAnswer launch_head(HeadRun<typename Kernels::Precision>& run, Launch launch) {
  run.prepare();
  launch.template operator()<typename Kernels::Count>(run.args());
  launch.template operator()<typename Kernels::Scan>(run.args());
  launch.template operator()<typename Kernels::Scatter>(run.args());
  launch.template operator()<typename Kernels::Root>(run.args());
  launch.template operator()<typename Kernels::Leaf>(run.args());
  launch.template operator()<typename Kernels::Merge>(run.args());
  launch.template operator()<typename Kernels::Hidden>(run.args());
  launch.template operator()<typename Kernels::Weight>(run.args());
  launch.template operator()<typename Kernels::Sum>(run.args());
  return run.answer();
}

/// Cuts the work into more pieces than a small problem would get: several splits, chunks and bins.
inline void cut_finely(device::HeadPlan& plan) {
  const device::HeadTiles& tiles = plan.tiles;
  const device::HeadSizes& sizes = plan.sizes;
  plan.pieces = device::divide_up<int64_t>(std::max<int64_t>(sizes.tokens, 1), 32);
  plan.tokens_a_piece = 32;
  plan.columns_a_split = tiles.root_columns;
  plan.root_splits = device::divide_up<int64_t>(std::max<int64_t>(sizes.root(), 1), plan.columns_a_split);
  plan.leaf_chunk = 2 * tiles.leaf_columns;
  plan.leaf_chunks = std::max<int64_t>(1, device::divide_up(sizes.largest_cluster, plan.leaf_chunk));
  plan.rows_a_bin = 20;
  plan.most_hidden_tiles =
      device::divide_up<int64_t>(sizes.tokens, tiles.x_rows) + sizes.most_hit_rows / 20 + 1;
  plan.tokens_a_split = 2 * tiles.y_rows;
  plan.weight_splits = device::divide_up<int64_t>(std::max<int64_t>(sizes.tokens, 1), plan.tokens_a_split);
}

}  // namespace hsm::emulation
