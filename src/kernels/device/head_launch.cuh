#pragma once
#include "kernels/device/bucket.h"
#include "kernels/device/head.h"
#include "kernels/device/head_gradients.h"
#include "kernels/device/head_merge.h"
#include "kernels/device/head_shapes.h"
#include "kernels/device/launch.cuh"

namespace hsm::kernels::device {

/// The variant for a D: the widest that keeps it in shared memory and fits there.
template <class P>
HeadVariant head_variant(int64_t dim, int64_t shared_bytes) {
  using Wide = typename HeadShapes<P, HeadVariant::resident_512>::Backward;
  constexpr int64_t kWideBytes = Wide::template shared_bytes<P, Side<typename P::Sum>>();
  if (dim <= 256) return HeadVariant::resident_256;
  if (dim <= 512 && kWideBytes <= shared_bytes) return HeadVariant::resident_512;
  return HeadVariant::streamed;
}

/// Calls f with the HeadShapes of the variant.
template <class P, class F>
auto with_shapes(int64_t dim, int64_t shared_bytes, F f) {
  switch (head_variant<P>(dim, shared_bytes)) {
    case HeadVariant::resident_256:
      return f(HeadShapes<P, HeadVariant::resident_256>{});
    case HeadVariant::resident_512:
      return f(HeadShapes<P, HeadVariant::resident_512>{});
    default:
      return f(HeadShapes<P, HeadVariant::streamed>{});
  }
}

template <class P>
HeadTiles head_tiles(int64_t dim, int64_t shared_bytes) {
  return with_shapes<P>(dim, shared_bytes, [](auto shapes) {
    using Shapes = decltype(shapes);
    return tiles_of<typename Shapes::Root, typename Shapes::Leaf, typename Shapes::Backward>();
  });
}

template <class P>
void launch_head_loss(const HeadArgs<P>& args, int64_t shared_bytes, Stream stream) {
  if (args.plan.sizes.clusters > kMostClusters) {
    throw UsageError("the GPU's head takes at most " + std::to_string(kMostClusters) + " clusters, not " +
                     std::to_string(args.plan.sizes.clusters) + "; choose fewer, or larger ones");
  }
  launch<CountKeys<P>>("count of the tokens' clusters", args, stream);
  launch<ScanKeys<P>>("scan of the tokens' clusters", args, stream);
  launch<ScatterKeys<P>>("sort of the tokens by cluster", args, stream);
  with_shapes<P>(args.plan.sizes.dim, shared_bytes, [&](auto shapes) {
    using Shapes = decltype(shapes);
    launch<RootForward<P, typename Shapes::Root>>("head's root, forward", args, stream);
    launch<LeafForward<P, typename Shapes::Leaf>>("head's leaves, forward", args, stream);
  });
  launch<MergeLoss<P>>("head's loss", args, stream);
}

template <class P>
void launch_head_gradients(const HeadArgs<P>& args, int64_t shared_bytes, Stream stream) {
  with_shapes<P>(args.plan.sizes.dim, shared_bytes, [&](auto shapes) {
    using Shapes = decltype(shapes);
    launch<HiddenGradient<P, typename Shapes::Backward>>("head's gradient by hidden states", args, stream);
    launch<WeightGradient<P, typename Shapes::Backward>>("head's gradient by weights", args, stream);
  });
  launch<SumSplits<P>>("sum of the head's gradients", args, stream);
}

}  // namespace hsm::kernels::device

/// Compiles the head for a precision.
#define HSM_INSTANTIATE_HEAD(P)                                           \
  template HeadTiles head_tiles<P>(int64_t, int64_t);                     \
  template void launch_head_loss<P>(const HeadArgs<P>&, int64_t, Stream); \
  template void launch_head_gradients<P>(const HeadArgs<P>&, int64_t, Stream);
