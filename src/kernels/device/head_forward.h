#pragma once
#include "kernels/device/head_rows.h"
#include "kernels/device/log_sum.h"

// Forward pass of the head: log Σ exp and the target's logit of each token, at the root and within its
// cluster. Logits live in registers only.

namespace hsm::kernels::device {

/// Sizes of a block's tile in the forward pass: BM tokens × BN columns, D walked in steps of BK through a
/// ring of Stages. Resident: the tokens' hidden states stay in shared memory, as D ≤ Resident; 0: they
/// stream, too.
template <int BM_, int BN_, int BK_, int WarpsM_, int WarpsN_, int Stages_, int Resident_>
struct ForwardShape {
  static constexpr int BM = BM_, BN = BN_, BK = BK_, WarpsM = WarpsM_, WarpsN = WarpsN_, Stages = Stages_,
                       Resident = Resident_;
  static constexpr int kThreads = WarpsM * WarpsN * 32;
  static constexpr int kRowFragments = BM / WarpsM / 16;
  static constexpr int kColumnFragments = BN / WarpsN / 16;
  static_assert(kRowFragments * WarpsM * 16 == BM && kColumnFragments * WarpsN * 16 == BN, "whole fragments");
  static constexpr int kStage = (BN + (Resident > 0 ? 0 : BM)) * BK;  ///< elements of a step

  template <class P, class Part>
  static constexpr int64_t shared_bytes() {
    return shared_piece(Resident * BM * sizeof(typename P::T)) +
           shared_piece(Stages * kStage * sizeof(typename P::T)) +
           shared_piece(Stages * BN * sizeof(typename P::Sum)) + shared_piece(WarpsN * BM * sizeof(Part));
  }
};

/// log Σ exp over a piece of the columns for a tile of tokens: what root and leaves share.
template <class P, class Shape, class Ctx>
class ForwardTile {
 public:
  using T = typename P::T;
  using S = typename P::Sum;
  using Args = HeadArgs<P>;

  struct Item {
    Columns columns;
    int64_t first_column = 0;  ///< of the piece walked
    int64_t end_column = 0;
    int64_t first_token = 0;  ///< place in natural or sorted order
    int64_t end_token = 0;
  };

  HSM_DEVICE ForwardTile(Ctx& ctx, const Args& args)
      : ctx_(ctx),
        args_(args),
        hidden_(ctx.template shared<T>(Shape::Resident > 0 ? Shape::Resident * Shape::BM : 0)),
        ring_(ctx.template shared<T>(Shape::Stages * kStage)),
        bias_(ctx.template shared<S>(Shape::Stages * Shape::BN)),
        parts_(ctx.template shared<LogSum<S>>(Shape::WarpsN * Shape::BM)),
        slices_(static_cast<int>(divide_up<int64_t>(args.plan.sizes.dim, Shape::BK))) {}

  /// `token_at(place)`: a token; `target_of(token)`: its column; `put_logit(place, column, target, z)`: sees
  /// every logit, also of rows and columns beyond the item's ends; `put_part(place, LogSum)`: takes the
  /// result.
  template <class TokenAt, class TargetOf, class PutLogit, class PutPart>
  HSM_DEVICE void run(const Item& item, TokenAt token_at, TargetOf target_of, PutLogit put_logit,
                      PutPart put_part) {
    item_ = item;
    const int rows = static_cast<int>(item.end_token - item.first_token);
    const auto hidden_source = [&](int row) {
      return RowSource<T>{args_.in.hidden,
                          row < rows ? int64_t{token_at(item.first_token + row)} * args_.plan.sizes.dim : -1};
    };
    const int tiles = static_cast<int>(divide_up<int64_t>(item.end_column - item.first_column, Shape::BN));
    const int steps = tiles * slices_;
    if constexpr (Shape::Resident > 0) {
      stage_rows<Shape::kThreads>(ctx_, resident(), Shape::BM, 0, args_.plan.sizes.dim, hidden_source);
    }
    for (int step = 0; step < Shape::Stages - 1; ++step) {
      if (step < steps) stage(step, hidden_source);
      ctx_.commit();
    }

    typename Ctx::template Rows<Row> running[Shape::kRowFragments];
    for (int m = 0; m < Shape::kRowFragments; ++m) {
      ctx_.each_held_row(running[m], [&](int row, Row& state) {
        const int64_t place = item.first_token + row_of(m) + row;
        state.total = no_terms<S>();
        state.target = ctx_.guard(HSM_SITE, place < item.end_token) ? target_of(token_at(place)) : -1;
      });
    }
    for (int step = 0; step < steps; ++step) {
      ctx_.template wait<Shape::Stages - 2>();
      ctx_.sync(HSM_SITE);  // this step's copies by all have landed; the stage of the step before is free
      if (step + Shape::Stages - 1 < steps) stage(step + Shape::Stages - 1, hidden_source);
      ctx_.commit();
      if (step % slices_ == 0) clear();
      multiply(step);
      if (step % slices_ == slices_ - 1) {
        absorb(step / slices_, running, put_logit);
      }
    }
    finish(running, put_part);
  }

 private:
  struct Row {
    LogSum<S> total;
    S tile_most;
    int32_t target;
  };
  static constexpr int kStage = Shape::kStage;

  using StageTile = Tile<typename Ctx::template Shared<T>, Shape::BK>;
  using HiddenTile =
      Tile<typename Ctx::template Shared<T>, (Shape::Resident > 0 ? Shape::Resident : Shape::BK)>;

  HSM_DEVICE HiddenTile resident() const { return {hidden_, 0}; }
  HSM_DEVICE StageTile columns_stage(int step) const { return {ring_, step % Shape::Stages * kStage}; }
  HSM_DEVICE StageTile hidden_stage(int step) const {
    return {ring_, step % Shape::Stages * kStage + Shape::BN * Shape::BK};
  }
  HSM_DEVICE int row_of(int m) const { return (ctx_.warp() / Shape::WarpsN * Shape::kRowFragments + m) * 16; }
  HSM_DEVICE int column_of(int n) const {
    return (ctx_.warp() % Shape::WarpsN * Shape::kColumnFragments + n) * 16;
  }

  template <class HiddenSource>
  HSM_DEVICE void stage(int step, HiddenSource hidden_source) {
    const int tile = step / slices_;
    const int64_t k = int64_t{step % slices_} * Shape::BK;
    const int64_t dim = args_.plan.sizes.dim;
    const int64_t first = item_.first_column + int64_t{tile} * Shape::BN;
    stage_rows<Shape::kThreads>(ctx_, columns_stage(step), Shape::BN, k, dim, [&](int row) {
      return first + row < item_.end_column ? column_source(args_, item_.columns, first + row)
                                            : RowSource<T>{args_.in.word, -1};
    });
    if constexpr (Shape::Resident == 0) {
      stage_rows<Shape::kThreads>(ctx_, hidden_stage(step), Shape::BM, k, dim, hidden_source);
    }
    if (k == 0) {
      for (int i = ctx_.thread(); i < Shape::BN; i += Shape::kThreads) {
        S bias = minus_infinity<S>();  // columns beyond the end count for nothing
        if (ctx_.guard(HSM_SITE, first + i < item_.end_column)) {
          bias = column_bias(ctx_, args_, item_.columns, first + i);
        }
        ctx_.put(bias_, tile % Shape::Stages * Shape::BN + i, bias);
      }
    }
  }

  HSM_DEVICE void clear() {
    for (auto& row : acc_) {
      for (auto& acc : row) ctx_.template clear<P>(acc);
    }
  }

  HSM_DEVICE void multiply(int step) {
    const StageTile columns = columns_stage(step);
    const StageTile streamed = hidden_stage(step);
    const int k0 = step % slices_ * Shape::BK;
    HSM_UNROLL
    for (int k = 0; k < Shape::BK; k += P::kDepth) {
      typename Ctx::template FragA<P> a[Shape::kRowFragments];
      typename Ctx::template FragB<P> b[Shape::kColumnFragments];
      HSM_UNROLL
      for (int m = 0; m < Shape::kRowFragments; ++m) {
        if constexpr (Shape::Resident > 0) {
          a[m] = ctx_.template load_a<P>(resident(), row_of(m), k0 + k);
        } else {
          a[m] = ctx_.template load_a<P>(streamed, row_of(m), k);
        }
      }
      HSM_UNROLL
      for (int n = 0; n < Shape::kColumnFragments; ++n)
        b[n] = ctx_.template load_b<P>(columns, column_of(n), k);
      HSM_UNROLL
      for (int m = 0; m < Shape::kRowFragments; ++m) {
        HSM_UNROLL
        for (int n = 0; n < Shape::kColumnFragments; ++n) ctx_.mma(acc_[m][n], a[m], b[n]);
      }
    }
  }

  // The tile's logits are whole: adds them to the running sums.
  template <class Running, class PutLogit>
  HSM_DEVICE void absorb(int tile, Running& running, PutLogit put_logit) {
    const int64_t first = item_.first_column + int64_t{tile} * Shape::BN;
    const int bias_at = tile % Shape::Stages * Shape::BN;
    HSM_UNROLL
    for (int m = 0; m < Shape::kRowFragments; ++m) {
      ctx_.each_held_row(running[m], [](int, Row& state) { state.tile_most = state.total.most; });
      HSM_UNROLL
      for (int n = 0; n < Shape::kColumnFragments; ++n) {
        ctx_.each(acc_[m][n], running[m], [&](int row, int column, S& z, Row& state) {
          z += ctx_.get(bias_, bias_at + column_of(n) + column);
          state.tile_most = larger(state.tile_most, z);
          put_logit(item_.first_token + row_of(m) + row, first + column_of(n) + column, state.target, z);
        });
      }
      ctx_.each_held_row(running[m], [](int, Row& state) {
        if (state.tile_most == minus_infinity<S>()) return;
        state.total.sum *= exponential(state.total.most - state.tile_most);
        state.total.most = state.tile_most;
      });
      HSM_UNROLL
      for (int n = 0; n < Shape::kColumnFragments; ++n) {
        ctx_.each(acc_[m][n], running[m], [](int, int, S& z, Row& state) {
          if (state.tile_most != minus_infinity<S>()) state.total.sum += exponential(z - state.total.most);
        });
      }
    }
  }

  // Joins the lanes' sums of a row, then the warps', in the order of their columns.
  template <class Running, class PutPart>
  HSM_DEVICE void finish(Running& running, PutPart put_part) {
    for (int m = 0; m < Shape::kRowFragments; ++m) {
      ctx_.row_reduce(running[m], [](const Row& a, const Row& b) {
        return Row{join(a.total, b.total), a.tile_most, a.target};
      });
      ctx_.each_row(running[m], [&](int row, Row& state) {
        ctx_.put(parts_, ctx_.warp() % Shape::WarpsN * Shape::BM + row_of(m) + row, state.total);
      });
    }
    ctx_.sync(HSM_SITE);  // the parts of all warps are there; all else is free for the next item
    for (int row = ctx_.thread(); row < Shape::BM; row += Shape::kThreads) {
      LogSum<S> total = ctx_.get(parts_, row);
      for (int w = 1; w < Shape::WarpsN; ++w) total = join(total, ctx_.get(parts_, w * Shape::BM + row));
      if (ctx_.guard(HSM_SITE, item_.first_token + row < item_.end_token)) {
        put_part(item_.first_token + row, total);
      }
    }
  }

  Ctx& ctx_;
  const Args& args_;
  typename Ctx::template Shared<T> hidden_;
  typename Ctx::template Shared<T> ring_;
  typename Ctx::template Shared<S> bias_;
  typename Ctx::template Shared<LogSum<S>> parts_;
  int slices_;
  Item item_;
  typename Ctx::template Acc<P> acc_[Shape::kRowFragments][Shape::kColumnFragments];
};

/// Where a token's partial log-sums lie in the workspace: [root splits, then leaf chunks][N].
template <class P>
HSM_DEVICE int64_t part_place(const HeadArgs<P>& args, int64_t part, int64_t token) {
  return 2 * (part * args.plan.sizes.tokens + token);
}
template <class P, class Ctx>
HSM_DEVICE void put_part(Ctx& ctx, const HeadArgs<P>& args, int64_t part, int64_t token,
                         const LogSum<typename P::Sum>& value) {
  ctx.put(args.state.workspace, part_place(args, part, token), value.most);
  ctx.put(args.state.workspace, part_place(args, part, token) + 1, value.sum);
}

/// Items of a pass over the root for so many rows: a tile of them × a piece of the columns.
template <class P>
HSM_HOST_DEVICE int64_t root_items(const HeadArgs<P>& args, int64_t rows, int tile) {
  return divide_up<int64_t>(rows, tile) * args.plan.root_splits;
}
template <class Item, class P>
HSM_DEVICE Item root_item(const HeadArgs<P>& args, int64_t i, int64_t rows, int tile) {
  const HeadPlan& plan = args.plan;
  Item item;
  item.columns = root_columns(args);
  item.first_column = i % plan.root_splits * plan.columns_a_split;
  item.end_column = smaller(item.first_column + plan.columns_a_split, item.columns.count);
  item.first_token = i / plan.root_splits * tile;
  item.end_token = smaller<int64_t>(item.first_token + tile, rows);
  return item;
}

/// Item: a tile of tokens × a piece of the root's columns.
template <class P, class Shape>
struct RootForward {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) {
    return Shape::template shared_bytes<P, LogSum<typename P::Sum>>();
  }
  static HSM_HOST_DEVICE int64_t items(const Args& args) {
    return root_items(args, args.plan.sizes.tokens, Shape::BM);
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    ForwardTile<P, Shape, Ctx> tile(ctx, args);
    for (int64_t i = ctx.block(); i < items(args); i += ctx.blocks()) {
      const auto item =
          root_item<typename ForwardTile<P, Shape, Ctx>::Item>(args, i, args.plan.sizes.tokens, Shape::BM);
      tile.run(
          item, [](int64_t place) { return static_cast<int32_t>(place); },
          [&](int32_t token) { return root_target(ctx, args, ctx.get(args.in.targets, token)); },
          [&](int64_t place, int64_t column, int32_t target, typename P::Sum z) {
            if (column == target) ctx.put(args.state.root_target_logit, place, z);
          },
          [&](int64_t place, const LogSum<typename P::Sum>& part) {
            put_part(ctx, args, i % args.plan.root_splits, place, part);
          });
    }
  }
};

/// Item: a tile of a hit cluster's tokens × a chunk of its rows.
template <class P, class Shape>
struct LeafForward {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) {
    return Shape::template shared_bytes<P, LogSum<typename P::Sum>>();
  }
  static int64_t items(const Args& args) {
    const HeadSizes& sizes = args.plan.sizes;
    return (divide_up<int64_t>(sizes.tokens, Shape::BM) + smaller(sizes.clusters, sizes.tokens)) *
           args.plan.leaf_chunks;
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    const auto& state = args.state;
    const int clusters = static_cast<int>(args.plan.sizes.clusters);
    ForwardTile<P, Shape, Ctx> tile(ctx, args);
    const int32_t items = ctx.get(state.leaf_start, clusters + 1);
    for (int32_t i = ctx.block(); i < items; i += ctx.blocks()) {
      const int cluster = find_key(ctx, state.leaf_start, i);
      typename ForwardTile<P, Shape, Ctx>::Item item;
      item.columns = leaf_columns(ctx, args, cluster);
      const auto chunks = static_cast<int32_t>(divide_up(item.columns.count, args.plan.leaf_chunk));
      const int32_t within = i - ctx.get(state.leaf_start, cluster);
      const int32_t chunk = within % chunks;
      item.first_column = chunk * args.plan.leaf_chunk;
      item.end_column = smaller(item.first_column + args.plan.leaf_chunk, item.columns.count);
      item.first_token = ctx.get(state.token_start, cluster) + within / chunks * Shape::BM;
      item.end_token =
          smaller<int64_t>(item.first_token + Shape::BM, ctx.get(state.token_start, cluster + 1));
      tile.run(
          item, [&](int64_t place) { return ctx.get(state.order, place); },
          [&](int32_t token) { return leaf_target(ctx, args, ctx.get(args.in.targets, token), cluster); },
          [&](int64_t place, int64_t column, int32_t target, typename P::Sum z) {
            if (column == target) ctx.put(state.leaf_target_logit, ctx.get(state.order, place), z);
          },
          [&](int64_t place, const LogSum<typename P::Sum>& part) {
            put_part(ctx, args, args.plan.root_splits + chunk, ctx.get(state.order, place), part);
          });
    }
  }
};

}  // namespace hsm::kernels::device
