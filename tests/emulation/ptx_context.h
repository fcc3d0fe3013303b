#pragma once
#include "emulation/fiber_context.h"

namespace hsm::emulation {

/// A fiber lane whose tile products go through a model of the instructions: ldmatrix and mma.sync with the
/// lane layouts of the PTX manual, fed with the addresses that the device code would give (ptx_layout.h).
/// Shows mistakes in those index functions and in the swizzle.
class PtxContext : public FiberContext {
 public:
  using FiberContext::FiberContext;

  template <class P>
  struct FragA {
    uint32_t r[4];
  };
  template <class P>
  struct FragB {
    uint32_t r[4];
  };
  template <class P>
  struct Acc {
    typename P::Sum v[8];
  };
  template <class V>
  struct Rows {
    V v[2];
  };

  template <class P, class M>
  FragA<P> load_a(const M& tile, int row, int k) {
    const auto at = kernels::device::ptx::a_address(lane());
    return rounded<P>(matrices<FragA<P>>(tile, row + at.line, k + at.piece * M::kPiece));
  }
  template <class P, class M>
  FragB<P> load_b(const M& tile, int col, int k) {
    const auto at = kernels::device::ptx::b_address(lane());
    return rounded<P>(matrices<FragB<P>>(tile, col + at.line, k + at.piece * M::kPiece));
  }
  template <class P, class M>
  FragB<P> load_bt(const M& tile, int k, int col) {
    FragB<P> b{};
    if constexpr (sizeof(typename P::T) == 4) {
      for (int i = 0; i < 4; ++i) {
        b.r[i] = kernels::device::bits_of(
            get(tile.memory, tile.place(k + kernels::device::ptx::bt32_line(lane(), i % 2),
                                        col + kernels::device::ptx::bt32_column(lane(), i / 2))));
      }
      return rounded<P>(b);
    } else {
      const auto at = kernels::device::ptx::bt_address(lane());
      const auto places = exchange(row_place(tile, k + at.line, col + at.piece * M::kPiece));
      for (int m = 0; m < 4; ++m) {
        for (int e = 0; e < 2; ++e) {  // .trans: rows 2t and 2t + 1 of column g
          const int from = places[static_cast<size_t>(8 * m + 2 * (lane() % 4) + e)];
          b.r[m] |= static_cast<uint32_t>(get(tile.memory, from + lane() / 4).bits) << (16 * e);
        }
      }
      return b;
    }
  }

  template <class P>
  void mma(Acc<P>& acc, const FragA<P>& a, const FragB<P>& b) {
    struct Registers {
      uint32_t a[4];
      uint32_t b[4];
    };
    Registers mine{};
    std::memcpy(mine.a, a.r, sizeof a.r);
    std::memcpy(mine.b, b.r, sizeof b.r);
    const auto all = exchange(mine);
    for (int half = 0; half < 2; ++half) {
      for (int i = 0; i < 4; ++i) {
        const int row = lane() / 4 + (i >= 2 ? 8 : 0);  // the manual's c0 … c3
        const int column = lane() % 4 * 2 + i % 2;
        for (int k = 0; k < P::kDepth; ++k) {
          acc.v[4 * half + i] += a_element<P>(all, row, k) * b_element<P>(all, half, k, column);
        }
      }
    }
  }

  template <class P>
  void clear(Acc<P>& acc) {
    for (auto& value : acc.v) value = 0;
  }
  template <class P, class F>
  void each(Acc<P>& acc, F f) {
    for (int i = 0; i < 8; ++i) {
      f(kernels::device::ptx::acc_row(lane(), i), kernels::device::ptx::acc_column(lane(), i), acc.v[i]);
    }
  }
  template <class P, class V, class F>
  void each(Acc<P>& acc, Rows<V>& rows, F f) {
    for (int i = 0; i < 8; ++i) {
      f(kernels::device::ptx::acc_row(lane(), i), kernels::device::ptx::acc_column(lane(), i), acc.v[i],
        rows.v[kernels::device::ptx::acc_slot(i)]);
    }
  }
  template <class V, class F>
  void each_held_row(Rows<V>& rows, F f) {
    f(kernels::device::ptx::acc_row(lane(), 0), rows.v[0]);
    f(kernels::device::ptx::acc_row(lane(), 2), rows.v[1]);
  }
  template <class V, class Op>
  void row_reduce(Rows<V>& rows, Op op) {
    for (int mask = 1; mask < 4; mask *= 2) {
      for (V& value : rows.v) value = op(value, shfl_xor(value, mask));
    }
  }
  template <class V, class F>
  void each_row(Rows<V>& rows, F f) {
    if (lane() % 4 == 0) each_held_row(rows, f);
  }

 private:
  // ldmatrix.x4: matrix m's row i lies where lane 8m + i points; a lane gets word lane % 4 of row lane / 4.
  template <class Fragment, class M>
  Fragment matrices(const M& tile, int line, int column) {
    const auto places = exchange(row_place(tile, line, column));
    Fragment fragment{};
    for (int m = 0; m < 4; ++m) {
      const int from = places[static_cast<size_t>(8 * m + lane() / 4)];
      if constexpr (sizeof(typename M::T) == 4) {
        fragment.r[m] = kernels::device::bits_of(get(tile.memory, from + lane() % 4));
      } else {
        for (int e = 0; e < 2; ++e) {
          fragment.r[m] |= static_cast<uint32_t>(get(tile.memory, from + lane() % 4 * 2 + e).bits)
                           << (16 * e);
        }
      }
    }
    return fragment;
  }

  template <class M>
  static int row_place(const M& tile, int line, int column) {
    const int place = tile.place(line, column);
    if (place % M::kPiece != 0) throw Violation("ldmatrix: a row is not aligned to 16 bytes");
    return place;
  }

  template <class P, class Fragment>
  static Fragment rounded(Fragment fragment) {
    if constexpr (sizeof(typename P::T) == 4) {
      for (uint32_t& word : fragment.r) {
        word = kernels::device::bits_of(kernels::device::to_tf32(kernels::device::float_of(word)));
      }
    }
    return fragment;
  }

  template <class P>
  static float value(uint32_t word, int e) {
    if constexpr (sizeof(typename P::T) == 4) {
      return kernels::device::float_of(word);
    } else {
      return kernels::device::to_float(typename P::T{static_cast<uint16_t>(word >> (16 * e))});
    }
  }

  // The manual's fragments. 16 bits, m16n8k16: A's registers hold columns 2t, 2t + 1 of row g; of row g + 8;
  // then both 8 columns on; B's, rows 2t, 2t + 1 of column g, then 8 rows on. tf32, m16n8k8: column t of row
  // g; of row g + 8; then 4 columns on; B: row t of column g, then 4 rows on.
  template <class P, class Registers>
  static float a_element(const Registers& all, int row, int k) {
    constexpr bool kWide = sizeof(typename P::T) == 4;
    const int group = kWide ? k % 4 : k % 8 / 2;
    const int r = row / 8 + 2 * (kWide ? k / 4 : k / 8);
    return value<P>(all[static_cast<size_t>(row % 8 * 4 + group)].a[r], k % 2);
  }
  template <class P, class Registers>
  static float b_element(const Registers& all, int half, int k, int column) {
    constexpr bool kWide = sizeof(typename P::T) == 4;
    const int group = kWide ? k % 4 : k % 8 / 2;
    const int r = kWide ? k / 4 : k / 8;
    return value<P>(all[static_cast<size_t>(column * 4 + group)].b[2 * half + r], k % 2);
  }
};

}  // namespace hsm::emulation
