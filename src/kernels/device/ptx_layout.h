#pragma once
#include "kernels/device/element.h"

// Which elements of a 16 × 16 tile product a lane holds, and which rows it points ldmatrix at, as the PTX
// manual (ISA 8.x, "Matrix multiply-accumulate: mma", "ldmatrix") lays them down. The device code and its
// model in the tests both go by these functions, so a mistake in them shows without a GPU.
//
// A 16 × 16 product is two m16n8 instructions, left and right half. Accumulator element i < 8 of a lane: half
// i / 4, register i % 4.
namespace hsm::kernels::device::ptx {

HSM_HOST_DEVICE constexpr int acc_row(int lane, int i) {
  return lane / 4 + (i % 4 >= 2 ? 8 : 0);
}
HSM_HOST_DEVICE constexpr int acc_column(int lane, int i) {
  return (i / 4) * 8 + (lane % 4) * 2 + i % 2;
}
/// Which of the lane's two rows (acc_row(lane, 0) and that plus 8) element i lies in.
HSM_HOST_DEVICE constexpr int acc_slot(int i) {
  return i % 4 >= 2 ? 1 : 0;
}

/// A row address: `line` of the tile in memory, `piece` of 16 bytes within the fragment's part of it.
struct Address {
  int line;
  int piece;
};

/// ldmatrix.x4 for A stored [m][k]: matrices are (rows 0–7, piece 0), (8–15, 0), (0–7, 1), (8–15, 1), which
/// are registers 0 to 3 of mma's A.
HSM_HOST_DEVICE constexpr Address a_address(int lane) {
  return {lane % 16, lane / 16};
}

/// ldmatrix.x4 for B stored [n][k]: (columns 0–7, piece 0), (0–7, 1), (8–15, 0), (8–15, 1): registers 0 and 1
/// of the left half's B, then of the right half's.
HSM_HOST_DEVICE constexpr Address b_address(int lane) {
  return {lane % 8 + (lane / 16) * 8, (lane / 8) % 2};
}

/// ldmatrix.x4.trans for 16-bit B stored [k][n]: (k 0–7, piece 0), (k 8–15, 0), (k 0–7, 1), (k 8–15, 1).
HSM_HOST_DEVICE constexpr Address bt_address(int lane) {
  return {lane % 16, lane / 16};
}

/// 32-bit B stored [k][n] is loaded element by element: register r of the m16n8k8 half `half`.
HSM_HOST_DEVICE constexpr int bt32_line(int lane, int r) {
  return lane % 4 + 4 * r;
}
HSM_HOST_DEVICE constexpr int bt32_column(int lane, int half) {
  return half * 8 + lane / 4;
}

}  // namespace hsm::kernels::device::ptx
