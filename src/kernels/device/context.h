#pragma once
#include <cstdint>

#include "kernels/device/element.h"

// The execution context: everything that the body of a device kernel asks of the machine that runs it. A body
// is a template over it, so that the same source runs on a GPU (cuda_context.cuh) and, in the tests, in
// emulators that check what a GPU would not report. A context offers:
//
//   block() blocks() thread() threads() lane() warp()     where this lane stands
//   sync(site)          barrier of the block
//   syncwarp(site)      barrier of the warp
//   guard(site, inside) returns `inside`; every bounds test goes through it
//   shared<T>(count)    the next piece of the block's shared memory, 128-byte aligned: a Shared<T>. All
//   threads
//                       make the same calls
//   get(view, i) put(view, i, value)     View and Shared memory
//   copy16(shared, at, view, from, inside)  starts an asynchronous copy of 16 bytes, or zeros when not
//   inside;
//                       both places are 16-byte aligned
//   commit() wait<Left>()   groups of copies; wait returns when at most Left of this lane's groups are under
//                       way. Other lanes' copies need a barrier after it
//   shfl_xor(value, mask) shfl(value, lane) match(key)    collectives of a whole warp; match returns the
//   lanes
//                       with this lane's key
//   FragA<P> FragB<P> Acc<P> Rows<V>     pieces of a 16 × 16 tile product, spread over the lanes of a warp in
//   a
//                       way that only the context knows; P is one of the precisions below
//   load_a<P>(tile, row, k)    [m][k]: 16 rows from `row`, P::kDepth columns from k
//   load_b<P>(tile, col, k)    [n][k]: 16 rows from `col`, P::kDepth columns from k
//   load_bt<P>(tile, k, col)   [k][n]: P::kDepth rows from k, 16 columns from `col`
//   mma<P>(acc, a, b)          acc += a · b
//   clear<P>(acc)              acc = 0
//   each<P>(acc, f)            f(row, col, sum&) for the elements this lane holds
//   each<P>(acc, rows, f)      f(row, col, sum&, V& of_row)
//   each_held_row(rows, f)     f(row, V&) for all rows of which this lane holds elements; several lanes a row
//   row_reduce(rows, op)       combines the Vs of a row over its lanes, op(a, b) commutative; all of them get
//   it each_row(rows, f)          f(row, V&), one lane a row
//
// Rule: no block reads what another block of the same launch writes. So blocks may be emulated one by one.

/// A number for the place in the source of a barrier or bounds test: tests remove each in turn.
#define HSM_SITE (::hsm::kernels::device::site_of(__FILE__, __LINE__))

namespace hsm::kernels::device {

/// Hash of the file's base name in the upper bits, the line in the lower 12.
HSM_HOST_DEVICE constexpr int site_of(const char* path, int line) {
  uint32_t hash = 2166136261U;
  for (const char* at = path; *at != 0; ++at) {
    hash = *at == '/' ? 2166136261U : (hash ^ static_cast<uint8_t>(*at)) * 16777619U;
  }
  return static_cast<int>(((hash & 0x7FFFFU) << 12) | (static_cast<uint32_t>(line) & 0xFFFU));
}

/// Global memory: n elements, not owned.
template <class T>
struct View {
  T* p = nullptr;
  int64_t n = 0;
};

// Precisions of a tile product: T is what lies in memory, Sum what is accumulated, kDepth how deep one
// product is. Tensor cores multiply Bf16, Fp16 and Tf32; Fma is plain arithmetic.
struct Bf16 {
  using T = BFloat16;
  using Sum = float;
  static constexpr int kDepth = 16;
};
struct Fp16 {
  using T = Half;
  using Sum = float;
  static constexpr int kDepth = 16;
};
struct Tf32 {
  using T = float;
  using Sum = float;
  static constexpr int kDepth = 8;
};
template <class S>
struct Fma {
  using T = S;
  using Sum = S;
  static constexpr int kDepth = 16 / sizeof(S);
};

/// What `bytes` of shared memory take: pieces start at multiples of 128.
constexpr int64_t shared_piece(int64_t bytes) {
  return (bytes + 127) / 128 * 128;
}

/// Rows of Width elements in shared memory, from element `at` on. Pieces of 16 bytes are exchanged within a
/// row by its number, so that lanes that read one column of eight rows meet eight different banks.
template <class Memory, int Width>
struct Tile {
  using T = typename Memory::Value;
  static constexpr int kPiece = 16 / sizeof(T);
  static constexpr int kPieces = Width / kPiece;
  static constexpr int kMask = kPieces >= 8 ? 7 : kPieces - 1;
  static_assert(Width % kPiece == 0 && (kPieces & (kPieces - 1)) == 0, "rows of 2^n pieces");

  Memory memory;
  int at = 0;

  HSM_HOST_DEVICE static constexpr int offset(int row, int column) {
    return row * Width + (((column / kPiece) ^ (row & kMask)) * kPiece) + column % kPiece;
  }
  HSM_HOST_DEVICE int place(int row, int column) const { return at + offset(row, column); }
};

}  // namespace hsm::kernels::device
