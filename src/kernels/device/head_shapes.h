#pragma once
#include <type_traits>

#include "kernels/device/head_backward.h"
#include "kernels/device/head_forward.h"

// The tile sizes that ship. For each precision a few variants by D: hidden states (or X) stay in shared
// memory up to 256 or 512 columns; above, everything streams. docs/gpu-kernels.md has their registers and
// occupancy.

namespace hsm::kernels::device {

enum class HeadVariant { resident_256, resident_512, streamed };

/// 16-bit elements.
template <int Resident>
using RootShape16 = ForwardShape<128, 128, 64, 2, 4, 4, Resident>;
template <int Resident>
using LeafShape16 = ForwardShape<32, 128, 64, 1, 4, 3, Resident>;
template <int Slice, bool Resident>
using BackwardShape16 = BackwardShape<64, 64, Slice, 2, 2, 2, 2, Resident>;

/// 32-bit elements.
template <int Resident>
using RootShape32 = ForwardShape<64, 64, 32, 2, 4, 3, Resident>;
template <int Resident>
using LeafShape32 = ForwardShape<32, 64, 32, 1, 4, 3, Resident>;
template <int Slice, bool Resident>
using BackwardShape32 = BackwardShape<32, 32, Slice, 2, 2, 2, 2, Resident>;

/// Shapes of a variant.
template <class P, HeadVariant V>
struct HeadShapes {
  static constexpr bool kNarrow = sizeof(typename P::T) == 2;
  static constexpr int kResident = V == HeadVariant::resident_256   ? 256
                                   : V == HeadVariant::resident_512 ? 512
                                                                    : 0;
  static constexpr int kSlice = V == HeadVariant::resident_512 ? 512 : 256;
  using Root = std::conditional_t<kNarrow, RootShape16<kResident>, RootShape32<kResident>>;
  using Leaf = std::conditional_t<kNarrow, LeafShape16<kResident>, LeafShape32<kResident>>;
  using Backward = std::conditional_t<kNarrow, BackwardShape16<kSlice, (kResident > 0)>,
                                      BackwardShape32<kSlice, (kResident > 0)>>;
};

/// What a plan has to know of shapes.
template <class Root, class Leaf, class Backward>
HeadTiles tiles_of() {
  HeadTiles tiles;
  tiles.root_tokens = Root::BM;
  tiles.root_columns = Root::BN;
  tiles.leaf_tokens = Leaf::BM;
  tiles.leaf_columns = Leaf::BN;
  tiles.x_rows = Backward::BX;
  tiles.y_rows = Backward::BY;
  tiles.slice = Backward::Slice;
  return tiles;
}

}  // namespace hsm::kernels::device
