#pragma once
#include "kernels/device/draw_args.h"
#include "kernels/device/launch.h"

namespace hsm::kernels::device {

/// A round of draws in float32: one launch before the expansion of what is asked for, one after it.
void launch_draw_columns(const DrawArgs<Fma<float>>& args, Stream stream);
void launch_draw_leaves(const DrawArgs<Fma<float>>& args, Stream stream);

}  // namespace hsm::kernels::device
