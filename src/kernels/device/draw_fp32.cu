#include "kernels/device/draw.h"
#include "kernels/device/draw_launch.h"
#include "kernels/device/launch.cuh"

namespace hsm::kernels::device {

void launch_draw_columns(const DrawArgs<Fma<float>>& args, Stream stream) {
  launch<DrawColumn<Fma<float>>>("draw of columns", args, stream);
}

void launch_draw_leaves(const DrawArgs<Fma<float>>& args, Stream stream) {
  launch<DrawLeaf<Fma<float>>>("draw of words", args, stream);
}

}  // namespace hsm::kernels::device
