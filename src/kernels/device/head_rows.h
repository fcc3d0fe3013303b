#pragma once
#include "kernels/device/head_args.h"

namespace hsm::kernels::device {

/// A contiguous piece of the head's columns: those of the root, where the shortlist's rows of the word matrix
/// come before the clusters' own rows, or of one cluster, which are rows of the word matrix.
struct Columns {
  int64_t first_word = 0;  ///< row of the word matrix that column 0 is
  int64_t words = 0;       ///< columns from the word matrix; then come cluster rows, from row 0
  int64_t count = 0;
};

template <class P>
HSM_DEVICE Columns root_columns(const HeadArgs<P>& args) {
  return {0, args.plan.sizes.shortlist, args.plan.sizes.root()};
}

template <class P, class Ctx>
HSM_DEVICE Columns leaf_columns(Ctx& ctx, const HeadArgs<P>& args, int cluster) {
  const int64_t first = ctx.get(args.in.cluster_offsets, cluster);
  const int64_t count = ctx.get(args.in.cluster_offsets, cluster + 1) - first;
  return {first, count, count};
}

/// Bias of a column.
template <class P, class Ctx>
HSM_DEVICE typename P::Sum column_bias(Ctx& ctx, const HeadArgs<P>& args, const Columns& columns,
                                       int64_t column) {
  return column < columns.words ? ctx.get(args.in.word_bias, columns.first_word + column)
                                : ctx.get(args.in.cluster_bias, column - columns.words);
}

/// What a token has to hit: its column at the root and, when its key is a cluster, within that.
template <class P, class Ctx>
HSM_DEVICE int32_t root_target(Ctx& ctx, const HeadArgs<P>& args, int32_t target) {
  if (target < args.plan.sizes.shortlist) return target;  // negative: no loss, hits nothing
  return static_cast<int32_t>(args.plan.sizes.shortlist) + ctx.get(args.in.cluster_of_row, target);
}
template <class P, class Ctx>
HSM_DEVICE int32_t leaf_target(Ctx& ctx, const HeadArgs<P>& args, int32_t target, int cluster) {
  return target - static_cast<int32_t>(ctx.get(args.in.cluster_offsets, cluster));
}

/// Largest i with list[i] ≤ item, in a list that ascends from 0 and ends beyond item: with lists of first
/// items, the key that the item belongs to.
template <class Ctx>
HSM_DEVICE int find_key(Ctx& ctx, View<int32_t> list, int32_t item) {
  int low = 0;
  int high = static_cast<int>(list.n) - 1;
  while (high - low > 1) {
    const int middle = low + (high - low) / 2;
    if (ctx.get(list, middle) <= item) {
      low = middle;
    } else {
      high = middle;
    }
  }
  return low;
}
/// Smallest i with list[i] = list[at].
template <class Ctx>
HSM_DEVICE int first_equal(Ctx& ctx, View<int32_t> list, int at) {
  const int32_t value = ctx.get(list, at);
  int low = 0;
  int high = at;
  while (low < high) {
    const int middle = (low + high) / 2;
    if (ctx.get(list, middle) < value) {
      low = middle + 1;
    } else {
      high = middle;
    }
  }
  return low;
}

/// Starts copies of `count` rows, columns from `k` on, into a tile; the context's threads share the
/// work. `row_at(i)` is the place in global memory of row i's first element, as a View and an index, or a
/// negative index for a row of zeros. Columns from `dim` on become zero.
template <int Threads, class Ctx, class Tile, class RowAt>
HSM_DEVICE void stage_rows(Ctx& ctx, const Tile& tile, int count, int64_t k, int64_t dim, RowAt row_at) {
  constexpr int kPiece = Tile::kPiece;
  constexpr int kPieces = Tile::kPieces;
  const bool aligned = dim % kPiece == 0;
  for (int i = ctx.thread(); i < count * kPieces; i += Threads) {
    const int row = i / kPieces;
    const int column = i % kPieces * kPiece;
    const auto from = row_at(row);
    const bool real = from.index >= 0;
    if (aligned) {
      const bool inside = ctx.guard(HSM_SITE, real && k + column < dim);
      ctx.copy16(tile.memory, tile.place(row, column), from.view, from.index + k + column, inside);
    } else {
      for (int e = 0; e < kPiece; ++e) {
        typename Tile::T value{};
        if (ctx.guard(HSM_SITE, real && k + column + e < dim))
          value = ctx.get(from.view, from.index + k + column + e);
        ctx.put(tile.memory, tile.place(row, column) + e, value);
      }
    }
  }
}

/// A row for stage_rows.
template <class T>
struct RowSource {
  View<const T> view;
  int64_t index;  ///< of its first element; negative: none
};

template <class P>
HSM_DEVICE RowSource<typename P::T> column_source(const HeadArgs<P>& args, const Columns& columns,
                                                  int64_t column) {
  const int64_t dim = args.plan.sizes.dim;
  if (column >= columns.count) return {args.in.word, -1};
  if (column < columns.words) return {args.in.word, (columns.first_word + column) * dim};
  return {args.in.cluster, (column - columns.words) * dim};
}

}  // namespace hsm::kernels::device
