#pragma once
#include "kernels/device/head_backward.h"

// The kernels of the head's backward pass: dH over tiles of tokens, dU and dW over tiles of rows, and the sum
// of dU's splits.

namespace hsm::kernels::device {

/// A token's side of G at the root or within `cluster`.
template <class P, class Ctx>
HSM_DEVICE Side<typename P::Sum> token_side(Ctx& ctx, const HeadArgs<P>& args, int32_t token, int cluster) {
  const int32_t target = ctx.get(args.in.targets, token);
  if (target < 0) return absent_token<typename P::Sum>();
  if (cluster < 0) return {-ctx.get(args.state.root_log_sum, token), root_target(ctx, args, target)};
  return {-ctx.get(args.state.leaf_log_sum, token), leaf_target(ctx, args, target, cluster)};
}

template <class P, class Ctx>
HSM_DEVICE Side<typename P::Sum> column_side(Ctx& ctx, const HeadArgs<P>& args, const Columns& columns,
                                             int64_t column) {
  if (!ctx.guard(HSM_SITE, column < columns.count)) return absent_column<typename P::Sum>();
  return {column_bias(ctx, args, columns, column), static_cast<int32_t>(column)};
}

template <class P>
HSM_DEVICE RowSource<typename P::T> token_source(const HeadArgs<P>& args, int32_t token) {
  return {args.in.hidden, int64_t{token} * args.plan.sizes.dim};
}

/// X: tokens in sorted order; Y: the root's columns, then those of each cluster that X's tokens belong to.
template <class P, class Shape, class Ctx>
class HiddenSource {
 public:
  using S = typename P::Sum;
  YTile tile;

  HSM_DEVICE HiddenSource(Ctx& ctx, const HeadArgs<P>& args, int64_t first, int64_t end)
      : ctx_(&ctx), args_(&args), first_(first), end_(end) {
    tile.columns = root_columns(args);
    tile.end = tile.columns.count;
    tile.end_x = static_cast<int>(end - first);
  }

  [[nodiscard]] HSM_DEVICE bool more() const { return tile.first < tile.end; }
  HSM_DEVICE bool next() {
    tile.first += Shape::BY;
    if (tile.first < tile.end) return false;
    // The next tokens' cluster; those of none are sorted last.
    const int64_t place = first_ + (tile.cluster < 0 ? 0 : tile.end_x);
    if (place >= end_) return false;
    const int key = ctx_->get(args_->state.key, ctx_->get(args_->state.order, place));
    if (key == args_->plan.sizes.clusters) return false;
    tile.cluster = key;
    tile.columns = leaf_columns(*ctx_, *args_, key);
    tile.first = 0;
    tile.end = tile.columns.count;
    tile.first_x = static_cast<int>(place - first_);
    tile.end_x =
        static_cast<int>(smaller<int64_t>(end_, ctx_->get(args_->state.token_start, key + 1)) - first_);
    return true;
  }
  HSM_DEVICE RowSource<typename P::T> x_row(Ctx& ctx, int i) const {
    if (!ctx.guard(HSM_SITE, first_ + i < end_)) return {args_->in.hidden, -1};
    return token_source(*args_, ctx.get(args_->state.order, first_ + i));
  }
  HSM_DEVICE RowSource<typename P::T> y_row(Ctx&, const YTile& at, int i) const {
    return column_source(*args_, at.columns, at.first + i);
  }
  HSM_DEVICE Side<S> x_side(Ctx& ctx, const YTile& at, int i) const {
    if (i < at.first_x || !ctx.guard(HSM_SITE, i < at.end_x)) return absent_token<S>();
    return token_side(ctx, *args_, ctx.get(args_->state.order, first_ + i), at.cluster);
  }
  HSM_DEVICE Side<S> y_side(Ctx& ctx, const YTile& at, int i) const {
    return column_side(ctx, *args_, at.columns, at.first + i);
  }

 private:
  Ctx* ctx_;
  const HeadArgs<P>* args_;
  int64_t first_;
  int64_t end_;
};

/// X: columns of the root or of a cluster; Y: tokens, in natural order at the root, in sorted order within a
/// cluster.
template <class P, class Shape, class Ctx>
class WeightSource {
 public:
  using S = typename P::Sum;
  YTile tile;

  HSM_DEVICE WeightSource(const HeadArgs<P>& args, const Columns& columns, int cluster, int64_t first_column,
                          int64_t first_token, int64_t end_token)
      : args_(&args), first_(first_column) {
    tile.columns = columns;
    tile.cluster = cluster;
    tile.first = first_token;
    tile.end = end_token;
    tile.end_x = static_cast<int>(smaller<int64_t>(Shape::BX, columns.count - first_column));
  }

  [[nodiscard]] HSM_DEVICE bool more() const { return tile.first < tile.end; }
  HSM_DEVICE bool next() {
    tile.first += Shape::BY;
    return false;
  }
  HSM_DEVICE RowSource<typename P::T> x_row(Ctx&, int i) const {
    return column_source(*args_, tile.columns, first_ + i);
  }
  HSM_DEVICE RowSource<typename P::T> y_row(Ctx& ctx, const YTile& at, int i) const {
    if (!ctx.guard(HSM_SITE, at.first + i < at.end)) return {args_->in.hidden, -1};
    return token_source(*args_, token(ctx, at, i));
  }
  HSM_DEVICE Side<S> x_side(Ctx& ctx, const YTile& at, int i) const {
    return column_side(ctx, *args_, at.columns, first_ + i);
  }
  HSM_DEVICE Side<S> y_side(Ctx& ctx, const YTile& at, int i) const {
    if (!ctx.guard(HSM_SITE, at.first + i < at.end)) return absent_token<S>();
    return token_side(ctx, *args_, token(ctx, at, i), at.cluster);
  }

 private:
  HSM_DEVICE int32_t token(Ctx& ctx, const YTile& at, int i) const {
    return at.cluster < 0 ? static_cast<int32_t>(at.first + i) : ctx.get(args_->state.order, at.first + i);
  }

  const HeadArgs<P>* args_;
  int64_t first_;
};

/// Item: a tile of sorted tokens × a slice of D.
template <class P, class Shape>
struct HiddenGradient {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) {
    return Shape::template shared_bytes<P, Side<typename P::Sum>>();
  }
  static int64_t items(const Args& args) { return args.plan.most_hidden_tiles * args.plan.slices; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    using S = typename P::Sum;
    const auto& state = args.state;
    const auto slices = static_cast<int32_t>(args.plan.slices);
    const S scale = ctx.get(args.in.scale, 0);
    BackwardTile<P, Shape, Ctx> tile(ctx, args);
    const int32_t items = ctx.get(state.tile_start, args.plan.sizes.keys()) * slices;
    for (int32_t i = ctx.block(); i < items; i += ctx.blocks()) {
      // All keys of a bin have one first tile; the bin's tokens are those of all its keys.
      const int last = find_key(ctx, state.tile_start, i / slices);
      const int first = first_equal(ctx, state.tile_start, last);
      const int64_t place = ctx.get(state.token_start, first) +
                            int64_t{i / slices - ctx.get(state.tile_start, last)} * Shape::BX;
      const int64_t end = smaller<int64_t>(place + Shape::BX, ctx.get(state.token_start, last + 1));
      tile.run(
          HiddenSource<P, Shape, Ctx>(ctx, args, place, end), i % slices,
          [&](int row, int64_t d, S sum) {
            if (!ctx.guard(HSM_SITE, place + row < end)) return;
            const int64_t token = ctx.get(state.order, place + row);
            ctx.put(args.out.hidden, token * args.plan.sizes.dim + d,
                    Element<typename P::T>::store(scale * sum));
          },
          [](int, S) {});
    }
  }
};

/// Where dU's splits lie in the workspace: [splits][R][D + 1], the bias last.
template <class P>
HSM_DEVICE int64_t split_place(const HeadArgs<P>& args, int64_t split, int64_t column) {
  return (split * args.plan.sizes.root() + column) * (args.plan.sizes.dim + 1);
}

/// Item: a tile of the root's columns × a split of the tokens × a slice of D; then a tile of a hit cluster's
/// rows × a slice.
template <class P, class Shape>
struct WeightGradient {
  using Args = HeadArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) {
    return Shape::template shared_bytes<P, Side<typename P::Sum>>();
  }
  static HSM_HOST_DEVICE int64_t root_items(const Args& args) {
    return args.plan.root_row_tiles * args.plan.weight_splits * args.plan.slices;
  }
  static int64_t items(const Args& args) {
    return root_items(args) + args.plan.most_weight_items * args.plan.slices;
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BackwardTile<P, Shape, Ctx> tile(ctx, args);
    const int64_t root = root_items(args);
    const int64_t leaf = ctx.get(args.state.weight_start, args.plan.sizes.keys()) * args.plan.slices;
    for (int64_t i = ctx.block(); i < root + leaf; i += ctx.blocks()) {
      const int slice = static_cast<int>(i % args.plan.slices);
      if (i < root) {
        root_item(ctx, args, tile, i / args.plan.slices, slice);
      } else {
        leaf_item(ctx, args, tile, static_cast<int32_t>((i - root) / args.plan.slices), slice);
      }
    }
  }

 private:
  template <class Ctx>
  static HSM_DEVICE void root_item(Ctx& ctx, const Args& args, BackwardTile<P, Shape, Ctx>& tile,
                                   int64_t item, int slice) {
    const HeadPlan& plan = args.plan;
    const Columns columns = root_columns(args);
    const int64_t split = item % plan.weight_splits;
    const int64_t first = item / plan.weight_splits * Shape::BX;
    const int64_t token = split * plan.tokens_a_split;
    const int64_t end = smaller(token + plan.tokens_a_split, plan.sizes.tokens);
    tile.run(
        WeightSource<P, Shape, Ctx>(args, columns, -1, first, token, end), slice,
        [&](int row, int64_t d, S sum) {
          if (!ctx.guard(HSM_SITE, first + row < columns.count)) return;
          ctx.put(args.state.workspace, split_place(args, split, first + row) + d, sum);
        },
        [&](int row, S sum) {
          if (slice != 0 || !ctx.guard(HSM_SITE, first + row < columns.count)) return;
          ctx.put(args.state.workspace, split_place(args, split, first + row) + plan.sizes.dim, sum);
        });
  }

  template <class Ctx>
  static HSM_DEVICE void leaf_item(Ctx& ctx, const Args& args, BackwardTile<P, Shape, Ctx>& tile,
                                   int32_t item, int slice) {
    const auto& state = args.state;
    const int cluster = find_key(ctx, state.weight_start, item);
    const Columns columns = leaf_columns(ctx, args, cluster);
    const int64_t first = int64_t{item - ctx.get(state.weight_start, cluster)} * Shape::BX;
    const int64_t gradient_row = args.plan.sizes.shortlist + ctx.get(state.row_start, cluster) + first;
    const S scale = ctx.get(args.in.scale, 0);
    tile.run(
        WeightSource<P, Shape, Ctx>(args, columns, cluster, first, ctx.get(state.token_start, cluster),
                                    ctx.get(state.token_start, cluster + 1)),
        slice,
        [&](int row, int64_t d, S sum) {
          if (!ctx.guard(HSM_SITE, first + row < columns.count)) return;
          ctx.put(args.out.word, (gradient_row + row) * args.plan.sizes.dim + d, scale * sum);
        },
        [&](int row, S sum) {
          if (slice != 0 || !ctx.guard(HSM_SITE, first + row < columns.count)) return;
          ctx.put(args.out.word_bias, gradient_row + row, scale * sum);
          ctx.put(args.out.word_rows, gradient_row + row,
                  static_cast<int32_t>(columns.first_word + first + row));
        });
  }
};

/// Item: 1,024 values of dU and da, whose splits are added in order.
template <class P, int Threads = 256>
struct SumSplits {
  using Args = HeadArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return 0; }
  static int64_t items(const Args& args) {
    return divide_up<int64_t>(args.plan.sizes.root() * (args.plan.sizes.dim + 1), 4 * Threads);
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    const int64_t values = args.plan.sizes.root() * (args.plan.sizes.dim + 1);
    const S scale = ctx.get(args.in.scale, 0);
    const int64_t step = int64_t{ctx.blocks()} * Threads;
    for (int64_t i = int64_t{ctx.block()} * Threads + ctx.thread(); ctx.guard(HSM_SITE, i < values);
         i += step) {
      S sum = 0;
      for (int64_t split = 0; split < args.plan.weight_splits; ++split) {
        sum += ctx.get(args.state.workspace, split * values + i);
      }
      write(ctx, args, i / (args.plan.sizes.dim + 1), i % (args.plan.sizes.dim + 1), scale * sum);
    }
  }

 private:
  template <class Ctx>
  static HSM_DEVICE void write(Ctx& ctx, const Args& args, int64_t column, int64_t d, S value) {
    const HeadSizes& sizes = args.plan.sizes;
    const bool is_word = column < sizes.shortlist;
    const int64_t row = is_word ? column : column - sizes.shortlist;
    if (d < sizes.dim) {
      ctx.put(is_word ? args.out.word : args.out.cluster, row * sizes.dim + d, value);
      return;
    }
    ctx.put(is_word ? args.out.word_bias : args.out.cluster_bias, row, value);
    if (is_word) ctx.put(args.out.word_rows, row, static_cast<int32_t>(row));
  }
};

}  // namespace hsm::kernels::device
