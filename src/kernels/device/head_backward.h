#pragma once
#include "kernels/device/head_rows.h"

// Backward pass of the head: logits are computed again tile by tile, turned into G = p − onehot, and
// multiplied with the other side: dH = G · (rows of weights), dU and dW = Gᵀ · H. No logits are stored,
// nothing is added atomically, and each sum has one order.

namespace hsm::kernels::device {

/// Sizes of a block's tile in the backward passes: BX rows of one side (X) meet BY rows of the other (Y) at a
/// time. Logits: warps WX × WY, each D cut among WK of them; products: each warp a part of Slice columns.
/// Resident: D ≤ Slice, and X stays in shared memory; else X and Y pass slice by slice, the item's own last.
template <int BX_, int BY_, int Slice_, int WX_, int WY_, int WK_, int Stages_, bool Resident_>
struct BackwardShape {
  static constexpr int BX = BX_, BY = BY_, Slice = Slice_, WX = WX_, WY = WY_, WK = WK_, Stages = Stages_;
  static constexpr bool Resident = Resident_;
  static constexpr int kWarps = WX * WY * WK;
  static constexpr int kThreads = kWarps * 32;
  static constexpr int kXFragments = BX / WX / 16;
  static constexpr int kYFragments = BY / WY / 16;
  static constexpr int kOutRows = BX / 16;
  static constexpr int kOutColumns = Slice / kWarps / 16;
  static_assert(kXFragments * WX * 16 == BX && kYFragments * WY * 16 == BY, "whole fragments");
  static_assert(kOutColumns * kWarps * 16 == Slice, "whole fragments");
  static_assert(WK == 1 || WK == 2, "halves");
  static constexpr int kX = BX * Slice;                            ///< elements of X
  static constexpr int kStage = BY * Slice + (Resident ? 0 : kX);  ///< elements of a step

  template <class P, class SideT>
  static constexpr int64_t shared_bytes() {
    return shared_piece((Resident ? kX : 0) * sizeof(typename P::T)) +
           shared_piece(Stages * kStage * sizeof(typename P::T)) +
           shared_piece(BX * BY * sizeof(typename P::T)) + shared_piece(BX * BY * sizeof(typename P::Sum)) +
           shared_piece((BX + BY) * sizeof(SideT));
  }
};

/// What makes an element of G: p = exp(z + bias − log_sum), less 1 where the sides' numbers meet. A column
/// has (bias, its number), a token (−log_sum, the number it has to hit). A column or token that takes no part
/// has −∞; numbers that are negative never meet.
template <class S>
struct Side {
  S term;
  int32_t number;
};
constexpr int32_t kNoColumn = -2;
constexpr int32_t kNoTarget = -1;

template <class S>
HSM_DEVICE Side<S> absent_column() {
  return {minus_infinity<S>(), kNoColumn};
}
template <class S>
HSM_DEVICE Side<S> absent_token() {
  return {minus_infinity<S>(), kNoTarget};
}

/// A tile of up to BY rows of Y: which, and what they mean for the rows of X.
struct YTile {
  Columns columns;    ///< when Y are columns
  int64_t first = 0;  ///< column or place of the first row
  int64_t end = 0;    ///< and beyond the last of its kind
  int cluster = -1;   ///< −1: the root
  int first_x = 0;    ///< rows of X that take part
  int end_x = 0;
};

/// Σ over tiles of Y of G · Y for one tile of X and one slice of D. A Source says what X and Y are:
///   bool more()                 whether `tile` is one
///   YTile tile                  the current tile of Y
///   bool next()                 goes on; whether X's sides change
///   RowSource x_row(i), y_row(tile, i)    row i of X or of a tile
///   Side x_side(tile, i), y_side(tile, i)
template <class P, class Shape, class Ctx>
class BackwardTile {
 public:
  using T = typename P::T;
  using S = typename P::Sum;
  using Args = HeadArgs<P>;

  HSM_DEVICE BackwardTile(Ctx& ctx, const Args& args)
      : ctx_(ctx),
        args_(args),
        x_(ctx.template shared<T>(Shape::Resident ? Shape::kX : 0)),
        ring_(ctx.template shared<T>(Shape::Stages * Shape::kStage)),
        g_(ctx.template shared<T>(Shape::BX * Shape::BY)),
        sums_(ctx.template shared<S>(Shape::BX * Shape::BY)),
        sides_(ctx.template shared<Side<S>>(Shape::BX + Shape::BY)),
        slices_(static_cast<int>(args.plan.slices)) {}

  /// `put(row, column, sum)` takes the products, column counted in D; `put_row_sum(row, Σ G)` the sums of G
  /// over Y.
  template <class Source, class Put, class PutRowSum>
  HSM_DEVICE void run(Source source, int slice, Put put, PutRowSum put_row_sum) {
    slice_ = slice;
    for (auto& row : out_) {
      for (auto& acc : row) ctx_.template clear<P>(acc);
    }
    for (auto& rows : row_sums_) ctx_.each_held_row(rows, [](int, S& sum) { sum = 0; });
    if constexpr (Shape::Resident) stage_x({x_, 0}, source, 0);

    Source ahead = source;  // what is being copied, one step before what is multiplied
    int ahead_visit = 0;
    int64_t staged = 0;
    const auto stage_next = [&] {
      if (ahead.more()) {
        stage(ahead, static_cast<int>(staged % Shape::Stages), visit_slice(ahead_visit));
        ++staged;
        if (++ahead_visit == slices_) {
          ahead_visit = 0;
          ahead.next();
        }
      }
      ctx_.commit();
    };
    for (int i = 0; i < Shape::Stages - 1; ++i) stage_next();

    int64_t step = 0;
    bool new_group = true;
    for (; source.more(); new_group = source.next()) {
      for (auto& row : logits_) {
        for (auto& acc : row) ctx_.template clear<P>(acc);
      }
      for (int visit = 0; visit < slices_; ++visit, ++step) {
        if constexpr (Shape::Stages == 1) {
          if (step > 0) ctx_.sync(HSM_SITE);  // the only stage is free
          stage_next();
        }
        if (visit == 0) put_sides(source, new_group);
        ctx_.template wait<(Shape::Stages > 1 ? Shape::Stages - 2 : 0)>();
        ctx_.sync(HSM_SITE);  // this step's copies by all have landed; the stage of the step before is free
        if constexpr (Shape::Stages > 1) stage_next();
        add_logits(static_cast<int>(step % Shape::Stages), source.tile);
      }
      make_g();
      multiply(static_cast<int>((step - 1) % Shape::Stages), source.tile);
    }
    finish(put, put_row_sum);
  }

 private:
  using RowTile = Tile<typename Ctx::template Shared<T>, Shape::Slice>;
  using GTile = Tile<typename Ctx::template Shared<T>, Shape::BY>;

  // Which slice the visit-th step of a tile works on: the item's own comes last, and is there to be
  // multiplied.
  HSM_DEVICE int visit_slice(int visit) const {
    if (visit == slices_ - 1) return slice_;
    return visit < slice_ ? visit : visit + 1;
  }
  HSM_DEVICE RowTile y_stage(int stage) const { return {ring_, stage * Shape::kStage}; }
  HSM_DEVICE RowTile x_stage(int stage) const {
    if constexpr (Shape::Resident) return {x_, 0};
    return {ring_, stage * Shape::kStage + Shape::BY * Shape::Slice};
  }
  HSM_DEVICE int k_half() const { return ctx_.warp() / (Shape::WX * Shape::WY); }
  HSM_DEVICE int x_of(int i) const {
    return (ctx_.warp() / Shape::WY % Shape::WX * Shape::kXFragments + i) * 16;
  }
  HSM_DEVICE int y_of(int i) const { return (ctx_.warp() % Shape::WY * Shape::kYFragments + i) * 16; }
  HSM_DEVICE int out_of(int i) const { return (ctx_.warp() * Shape::kOutColumns + i) * 16; }
  // Whether any of 16 rows of X takes part in a tile.
  static HSM_DEVICE bool takes_part(const YTile& tile, int x) {
    return x < tile.end_x && x + 16 > tile.first_x;
  }

  template <class Source>
  HSM_DEVICE void stage_x(const RowTile& to, const Source& source, int slice) {
    stage_rows<Shape::kThreads>(ctx_, to, Shape::BX, int64_t{slice} * Shape::Slice, args_.plan.sizes.dim,
                                [&](int row) { return source.x_row(ctx_, row); });
  }
  template <class Source>
  HSM_DEVICE void stage(const Source& source, int at, int slice) {
    stage_rows<Shape::kThreads>(ctx_, y_stage(at), Shape::BY, int64_t{slice} * Shape::Slice,
                                args_.plan.sizes.dim,
                                [&](int row) { return source.y_row(ctx_, source.tile, row); });
    if constexpr (!Shape::Resident) stage_x(x_stage(at), source, slice);
  }

  // The sides of the tile before were read ahead of the barrier that made its G whole. X's change only with
  // the group.
  template <class Source>
  HSM_DEVICE void put_sides(const Source& source, bool new_group) {
    for (int i = ctx_.thread(); i < Shape::BX + Shape::BY; i += Shape::kThreads) {
      if (i >= Shape::BX) {
        ctx_.put(sides_, i, source.y_side(ctx_, source.tile, i - Shape::BX));
      } else if (new_group) {
        ctx_.put(sides_, i, source.x_side(ctx_, source.tile, i));
      }
    }
  }

  HSM_DEVICE void add_logits(int at, const YTile& tile) {
    const RowTile x = x_stage(at);
    const RowTile y = y_stage(at);
    constexpr int kDepth = Shape::Slice / Shape::WK;
    const int k0 = k_half() * kDepth;
    for (int k = k0; k < k0 + kDepth; k += P::kDepth) {
      typename Ctx::template FragB<P> b[Shape::kYFragments];
      HSM_UNROLL
      for (int j = 0; j < Shape::kYFragments; ++j) b[j] = ctx_.template load_b<P>(y, y_of(j), k);
      HSM_UNROLL
      for (int i = 0; i < Shape::kXFragments; ++i) {
        if (!takes_part(tile, x_of(i))) continue;
        const auto a = ctx_.template load_a<P>(x, x_of(i), k);
        HSM_UNROLL
        for (int j = 0; j < Shape::kYFragments; ++j) ctx_.mma(logits_[i][j], a, b[j]);
      }
    }
  }

  HSM_DEVICE void make_g() {
    if constexpr (Shape::WK == 2) {
      if (k_half() == 1) {
        for_each_logit([&](int x, int y, S& z, S&) { ctx_.put(sums_, x * Shape::BY + y, z); });
      }
      ctx_.sync(HSM_SITE);  // the second halves are written
    }
    if (k_half() == 0) {
      for_each_logit([&](int x, int y, S& z, S& row_sum) {
        if constexpr (Shape::WK == 2) z += ctx_.get(sums_, x * Shape::BY + y);
        const Side<S> x_side = ctx_.get(sides_, x);
        const Side<S> y_side = ctx_.get(sides_, Shape::BX + y);
        S g = exponential(z + (x_side.term + y_side.term));
        if (x_side.number == y_side.number) g -= 1;
        row_sum += g;
        ctx_.put(g_, GTile::offset(x, y), Element<T>::store(g));
      });
    }
    ctx_.sync(HSM_SITE);  // G is whole
  }

  template <class F>
  HSM_DEVICE void for_each_logit(F f) {
    HSM_UNROLL
    for (int i = 0; i < Shape::kXFragments; ++i) {
      HSM_UNROLL
      for (int j = 0; j < Shape::kYFragments; ++j) {
        ctx_.each(logits_[i][j], row_sums_[i], [&](int row, int column, S& z, S& row_sum) {
          f(x_of(i) + row, y_of(j) + column, z, row_sum);
        });
      }
    }
  }

  HSM_DEVICE void multiply(int at, const YTile& tile) {
    const RowTile y = y_stage(at);
    const GTile g{g_, 0};
    HSM_UNROLL
    for (int k = 0; k < Shape::BY; k += P::kDepth) {
      typename Ctx::template FragB<P> b[Shape::kOutColumns];
      HSM_UNROLL
      for (int j = 0; j < Shape::kOutColumns; ++j) b[j] = ctx_.template load_bt<P>(y, k, out_of(j));
      HSM_UNROLL
      for (int i = 0; i < Shape::kOutRows; ++i) {
        if (!takes_part(tile, i * 16)) continue;
        const auto a = ctx_.template load_a<P>(g, i * 16, k);
        HSM_UNROLL
        for (int j = 0; j < Shape::kOutColumns; ++j) ctx_.mma(out_[i][j], a, b[j]);
      }
    }
  }

  template <class Put, class PutRowSum>
  HSM_DEVICE void finish(Put put, PutRowSum put_row_sum) {
    const int64_t first = int64_t{slice_} * Shape::Slice;
    HSM_UNROLL
    for (int i = 0; i < Shape::kOutRows; ++i) {
      HSM_UNROLL
      for (int j = 0; j < Shape::kOutColumns; ++j) {
        ctx_.each(out_[i][j], [&](int row, int column, S& sum) {
          const int64_t d = first + out_of(j) + column;
          if (ctx_.guard(HSM_SITE, d < args_.plan.sizes.dim)) put(i * 16 + row, d, sum);
        });
      }
    }
    // Sums of G: over the lanes of a row, then over the warps in the order of Y.
    for (int i = 0; i < Shape::kXFragments; ++i) {
      ctx_.row_reduce(row_sums_[i], [](S a, S b) { return a + b; });
      if (k_half() == 0) {
        ctx_.each_row(row_sums_[i], [&](int row, S& sum) {
          ctx_.put(sums_, ctx_.warp() % Shape::WY * Shape::BX + x_of(i) + row, sum);
        });
      }
    }
    ctx_.sync(HSM_SITE);  // all warps' sums are there; all else is free for the next item
    for (int row = ctx_.thread(); row < Shape::BX; row += Shape::kThreads) {
      S total = ctx_.get(sums_, row);
      for (int w = 1; w < Shape::WY; ++w) total += ctx_.get(sums_, w * Shape::BX + row);
      put_row_sum(row, total);
    }
  }

  Ctx& ctx_;
  const Args& args_;
  typename Ctx::template Shared<T> x_;
  typename Ctx::template Shared<T> ring_;
  typename Ctx::template Shared<T> g_;
  typename Ctx::template Shared<S> sums_;
  typename Ctx::template Shared<Side<S>> sides_;
  int slices_;
  int slice_ = 0;
  typename Ctx::template Acc<P> logits_[Shape::kXFragments][Shape::kYFragments];
  typename Ctx::template Rows<S> row_sums_[Shape::kXFragments];
  typename Ctx::template Acc<P> out_[Shape::kOutRows][Shape::kOutColumns];
};

}  // namespace hsm::kernels::device
