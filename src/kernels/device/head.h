#pragma once
#include "kernels/device/head_args.h"
#include "kernels/device/launch.h"

namespace hsm::kernels::device {

/// The tiles of the kernels that a pass over this D runs on a device whose blocks have `shared_bytes` of
/// shared memory (163 KB on sm_80, 227 KB on sm_90). P: Bf16, Fp16, Tf32 or Fma<float>.
template <class P>
HeadTiles head_tiles(int64_t dim, int64_t shared_bytes);

/// The forward pass: six launches on `stream`. Fills args.state and args.out.total_loss. args.plan was made
/// with head_tiles<P>; args.in.targets hold rows of the word matrix. Error (exit code 1) when a launch fails.
template <class P>
void launch_head_loss(const HeadArgs<P>& args, int64_t shared_bytes, Stream stream);

/// The backward pass, after launch_head_loss on the same args: three launches. Fills the rest of args.out,
/// which are the gradients of scale · Σ losses.
template <class P>
void launch_head_gradients(const HeadArgs<P>& args, int64_t shared_bytes, Stream stream);

}  // namespace hsm::kernels::device
