#pragma once
#include "kernels/device/block_scan.h"
#include "kernels/device/head_forward.h"
#include "kernels/device/search_args.h"

// Kernels of a decoding step: exact top-k over the two levels, as decode/candidate_search.h has it. Once a
// step RootLogits; once a search RowBest and MergeBest (root words). Then rounds of GatherPairs, SortPairs,
// LeafLogits, PairBest, MergeBest while a query has `more`; a round without pairs changes nothing, so some
// may be launched blindly. Scores are (hypothesis + (root + leaf)) in double; a row's results do not depend
// on other rows.

namespace hsm::kernels::device {

/// log P(column | row) at the root.
template <class P, class Ctx>
HSM_DEVICE double root_log_prob(Ctx& ctx, const SearchArgs<P>& args, int64_t row, int64_t column) {
  const auto z = ctx.get(args.root_logit, row * args.head.plan.sizes.root() + column);
  return static_cast<double>(smaller(z - ctx.get(args.root_log_sum, row), typename P::Sum{0}));
}

/// log Σ exp of a row's logits at the root.
template <class P, class Ctx>
HSM_DEVICE typename P::Sum joined_root(Ctx& ctx, const SearchArgs<P>& args, int64_t row) {
  const int64_t splits = args.head.plan.root_splits;
  LogSum<typename P::Sum> total = no_terms<typename P::Sum>();
  for (int64_t i = 0; i < splits; ++i) total = join(total, ctx.get(args.root_part, row * splits + i));
  return value_of(total);
}

template <class P, class Ctx>
HSM_DEVICE bool allowed(Ctx& ctx, const SearchArgs<P>& args, int32_t word) {
  return (ctx.get(args.forbidden, word / 32) >> (word % 32) & 1U) == 0;
}

/// Item: a tile of rows × a split of the root's columns. Stores the logits.
template <class P, class Shape>
struct RootLogits {
  using Args = SearchArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) { return Shape::template shared_bytes<P, LogSum<S>>(); }
  static HSM_HOST_DEVICE int64_t items(const Args& args) {
    return root_items(args.head, args.rows, Shape::BM);
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    const int64_t splits = args.head.plan.root_splits;
    ForwardTile<P, Shape, Ctx> tile(ctx, args.head);
    for (int64_t i = ctx.block(); i < items(args); i += ctx.blocks()) {
      const auto item =
          root_item<typename ForwardTile<P, Shape, Ctx>::Item>(args.head, i, args.rows, Shape::BM);
      tile.run(
          item, [](int64_t place) { return static_cast<int32_t>(place); }, [](int32_t) { return -1; },
          [&](int64_t place, int64_t column, int32_t, S z) {
            if (ctx.guard(HSM_SITE, place < item.end_token) &&
                ctx.guard(HSM_SITE, column < item.end_column)) {
              ctx.put(args.root_logit, place * item.columns.count + column, z);
            }
          },
          [&](int64_t place, const LogSum<S>& part) {
            ctx.put(args.root_part, place * splits + i % splits, part);
          });
    }
  }
};

/// Item: a row. Its log Σ exp, the end symbol's log-probability, and its best words among the shortlist and
/// the clusters of one word.
template <class P, int Chunk, int Threads = 256>
struct RowBest {
  using Args = SearchArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return top_bytes<Chunk, Threads>(); }
  static int64_t items(const Args& args) { return args.rows; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockTop<Chunk, Threads, Ctx> top(ctx);
    for (int64_t row = ctx.block(); row < args.rows; row += ctx.blocks()) {
      const S log_sum = joined_root(ctx, args, row);
      if (ctx.thread() == 0) ctx.put(args.root_log_sum, row, log_sum);
      top.clear(args.kept - 1);  // its barrier lets all see the log-sum
      if (ctx.thread() == 0) {
        ctx.put(args.end_log_prob, row, static_cast<float>(root_log_prob(ctx, args, row, args.end_row)));
      }
      const int32_t query = ctx.get(args.query_of_row, row);
      const auto parent = static_cast<int32_t>(row - ctx.get(args.first_row, query));
      const Ranked after = ctx.get(args.after, query);
      const double score = ctx.get(args.score, row);
      const HeadSizes& sizes = args.head.plan.sizes;
      top.offer(sizes.root(), [&](int64_t column) {
        const int64_t word_row =
            column < sizes.shortlist ? column : single_word(ctx, args, column - sizes.shortlist);
        if (word_row < 0 || word_row == args.end_row) return no_rank();
        const int32_t word = ctx.get(args.word_of_row, word_row);
        if (!allowed(ctx, args, word)) return no_rank();
        const Ranked item{visible(score + root_log_prob(ctx, args, row, column)), word, parent};
        return before(after, item) ? item : no_rank();
      });
      top.put_kept(args.row_best, row * args.kept, args.kept);
    }
  }

 private:
  /// The row of the only word of a cluster; −1 when it has several, or none.
  template <class Ctx>
  static HSM_DEVICE int64_t single_word(Ctx& ctx, const Args& args, int64_t cluster) {
    const int64_t first = ctx.get(args.head.in.cluster_offsets, cluster);
    return ctx.get(args.head.in.cluster_offsets, cluster + 1) - first == 1 ? first : -1;
  }
};

/// Item: a query. Merges what its rows (Rows) or its pairs of this round found into `best`.
template <class P, bool Rows, int Chunk, int Threads = 256>
struct MergeBest {
  using Args = SearchArgs<P>;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return top_bytes<Chunk, Threads>(); }
  static int64_t items(const Args& args) { return args.queries; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockTop<Chunk, Threads, Ctx> top(ctx);
    for (int32_t query = ctx.block(); query < args.queries; query += ctx.blocks()) {
      top.clear(args.kept - 1);
      const int64_t best = int64_t{query} * args.kept;
      if constexpr (Rows) {
        const int64_t first = ctx.get(args.first_row, query);
        const int64_t rows = ctx.get(args.first_row, query + 1) - first;
        top.offer(rows * args.kept, [&](int64_t i) { return ctx.get(args.row_best, first * args.kept + i); });
        if (ctx.thread() == 0) {
          ctx.put(args.last_pair, query, Ranked{-minus_infinity<double>(), 0, 0});
          const bool wanted = ctx.get(args.after, query).score > minus_infinity<double>();
          ctx.put(args.more, query, wanted && args.leaf_stride > 1 ? 1 : 0);
        }
      } else {
        const int64_t first = int64_t{query} * args.pairs_a_round;
        top.offer(args.kept, [&](int64_t i) { return ctx.get(args.best, best + i); });
        top.offer(int64_t{ctx.get(args.pair_count, query)} * args.kept,
                  [&](int64_t i) { return ctx.get(args.pair_best, first * args.kept + i); });
        if (ctx.thread() == 0) finish_round(ctx, args, query, top.kept(args.kept - 1).score);
      }
      top.put_kept(args.best, best, args.kept);
    }
  }

 private:
  // A full round may have left pairs; not when the last one's bound is below the worst word kept.
  template <class Ctx>
  static HSM_DEVICE void finish_round(Ctx& ctx, const Args& args, int32_t query, double floor) {
    const int32_t count = ctx.get(args.pair_count, query);
    const bool more = count == args.pairs_a_round && ctx.get(args.last_pair, query).score >= floor;
    ctx.put(args.more, query, more ? 1 : 0);
    ctx.put(args.expanded, query, ctx.get(args.expanded, query) + count);
  }
};

/// Item: a query. Its best pairs after the last one, as far as their bound lets them matter.
template <class P, int Chunk, int Threads = 256>
struct GatherPairs {
  using Args = SearchArgs<P>;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return top_bytes<Chunk, Threads>(); }
  static int64_t items(const Args& args) { return args.queries; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockTop<Chunk, Threads, Ctx> top(ctx);
    for (int32_t query = ctx.block(); query < args.queries; query += ctx.blocks()) {
      top.clear(args.pairs_a_round - 1);
      const int64_t clusters = args.head.plan.sizes.clusters;
      const int64_t first = ctx.get(args.first_row, query);
      const int64_t rows = ctx.get(args.first_row, query + 1) - first;
      const double floor = ctx.get(args.best, int64_t{query + 1} * args.kept - 1).score;
      const Ranked last = ctx.get(args.last_pair, query);
      if (ctx.get(args.more, query) != 0) {
        top.offer(rows * clusters, [&](int64_t i) {
          const int64_t parent = i / clusters;
          const int64_t cluster = i % clusters;
          if (cluster_words(ctx, args, cluster) < 2) return no_rank();
          const double root =
              root_log_prob(ctx, args, first + parent, args.head.plan.sizes.shortlist + cluster);
          const Ranked pair{ctx.get(args.score, first + parent) + root, static_cast<int32_t>(parent),
                            static_cast<int32_t>(cluster)};
          return pair.score >= floor && before(last, pair) ? pair : no_rank();
        });
      }
      const int count = found(top, args.pairs_a_round);
      top.put_kept(args.pair, int64_t{query} * args.pairs_a_round, count);
      if (ctx.thread() == 0) {
        ctx.put(args.pair_count, query, count);
        if (count > 0) ctx.put(args.last_pair, query, top.kept(count - 1));
      }
    }
  }

 private:
  template <class Ctx>
  static HSM_DEVICE int64_t cluster_words(Ctx& ctx, const Args& args, int64_t cluster) {
    return ctx.get(args.head.in.cluster_offsets, cluster + 1) -
           ctx.get(args.head.in.cluster_offsets, cluster);
  }
  // How many items a sorted list holds, by bisection.
  template <class Top>
  static HSM_DEVICE int found(const Top& top, int most) {
    int low = 0;
    int high = most;
    while (low < high) {
      const int middle = (low + high) / 2;
      if (top.kept(middle).score > minus_infinity<double>()) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return low;
  }
};

/// One block: the round's pairs sorted by cluster, and cut into items of at most Tile pairs of one cluster.
/// At most Chunk pairs.
template <class P, int Chunk, int Tile, int Threads = 1024>
struct SortPairs {
  using Args = SearchArgs<P>;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) {
    return shared_piece(Chunk * 8) + shared_piece(2 * Threads * 4);
  }
  static int64_t items(const Args&) { return 1; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    auto keys = ctx.template shared<int64_t>(Chunk);  // cluster · 2^32 + pair; pairs that are none come last
    auto memory = ctx.template shared<int32_t>(2 * Threads);
    const int slots = args.queries * args.pairs_a_round;
    for (int i = ctx.thread(); i < Chunk; i += Threads) ctx.put(keys, i, key_of(ctx, args, i, slots));
    for (int size = 2; size <= Chunk; size *= 2) {
      for (int distance = size / 2; distance > 0; distance /= 2) {
        ctx.sync(HSM_SITE);  // the step before is whole
        for (int t = ctx.thread(); t < Chunk / 2; t += Threads) {
          const int i = t / distance * 2 * distance + t % distance;
          const int64_t a = ctx.get(keys, i);
          const int64_t b = ctx.get(keys, i + distance);
          if ((a > b) == ((i & size) == 0)) {
            ctx.put(keys, i, b);
            ctx.put(keys, i + distance, a);
          }
        }
      }
    }
    ctx.sync(HSM_SITE);  // the keys are sorted
    constexpr int kEach = Chunk / Threads;
    const int first = ctx.thread() * kEach;
    int32_t starts = 0;
    for (int i = first; i < first + kEach; ++i) starts += begins_item(ctx, keys, i) ? 1 : 0;
    int32_t item = block_exclusive(ctx, memory, starts, 0, [](int32_t a, int32_t b) { return a + b; });
    for (int i = first; i < first + kEach; ++i) {
      if (begins_item(ctx, keys, i)) ctx.put(args.item_start, item++, i);
      const int64_t key = ctx.get(keys, i);
      if (key == kNone) continue;
      ctx.put(args.order, i, static_cast<int32_t>(key & 0x7FFFFFFF));
      if (i + 1 == Chunk || ctx.get(keys, i + 1) == kNone) {  // the last pair
        ctx.put(args.item_start, item, i + 1);
        ctx.put(args.item_count, 0, item);
      }
    }
    if (ctx.thread() == 0 && ctx.get(keys, 0) == kNone) ctx.put(args.item_count, 0, 0);
  }

 private:
  static constexpr int64_t kNone = 0x7FFFFFFFFFFFFFFF;

  template <class Ctx>
  static HSM_DEVICE int64_t key_of(Ctx& ctx, const Args& args, int slot, int slots) {
    if (!ctx.guard(HSM_SITE, slot < slots)) return kNone;
    const int query = slot / args.pairs_a_round;
    if (slot % args.pairs_a_round >= ctx.get(args.pair_count, query)) return kNone;
    return (int64_t{ctx.get(args.pair, slot).second} << 32) | slot;
  }

  // Whether an item begins at place i: a new cluster, or Tile pairs after the item before.
  template <class Ctx>
  static HSM_DEVICE bool begins_item(Ctx& ctx, typename Ctx::template Shared<int64_t> keys, int i) {
    const int64_t key = ctx.get(keys, i);
    if (key == kNone) return false;
    const int64_t group = key >> 32 << 32;
    int low = 0;
    int high = i;  // the first pair of the cluster, by bisection
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ctx.get(keys, middle) < group) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    return (i - low) % Tile == 0;
  }
};

/// Item: up to Shape::BM pairs of one cluster. Stores their leaves' logits and log-sums.
template <class P, class Shape>
struct LeafLogits {
  using Args = SearchArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Shape::kThreads;
  static constexpr int64_t shared_bytes(const Args&) { return Shape::template shared_bytes<P, LogSum<S>>(); }
  static int64_t items(const Args& args) { return int64_t{args.queries} * args.pairs_a_round; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    ForwardTile<P, Shape, Ctx> tile(ctx, args.head);
    const int32_t count = ctx.get(args.item_count, 0);
    for (int32_t i = ctx.block(); i < count; i += ctx.blocks()) {
      typename ForwardTile<P, Shape, Ctx>::Item item;
      item.first_token = ctx.get(args.item_start, i);
      item.end_token = ctx.get(args.item_start, i + 1);
      item.columns =
          leaf_columns(ctx, args.head, ctx.get(args.pair, ctx.get(args.order, item.first_token)).second);
      item.end_column = item.columns.count;
      tile.run(
          item, [&](int64_t place) { return row_of(ctx, args, ctx.get(args.order, place)); },
          [](int32_t) { return -1; },
          [&](int64_t place, int64_t column, int32_t, S z) {
            if (ctx.guard(HSM_SITE, place < item.end_token) &&
                ctx.guard(HSM_SITE, column < item.end_column)) {
              ctx.put(args.leaf_logit, ctx.get(args.order, place) * args.leaf_stride + column, z);
            }
          },
          [&](int64_t place, const LogSum<S>& part) {
            ctx.put(args.leaf_part, ctx.get(args.order, place), part);
          });
    }
  }

  /// The row of a pair's hypothesis.
  template <class Ctx>
  static HSM_DEVICE int32_t row_of(Ctx& ctx, const Args& args, int64_t slot) {
    const auto query = static_cast<int32_t>(slot / args.pairs_a_round);
    return ctx.get(args.first_row, query) + ctx.get(args.pair, slot).first;
  }
};

/// Item: a pair. The best words of its cluster, those alone that are no worse than the worst kept.
template <class P, int Chunk, int Threads = 128>
struct PairBest {
  using Args = SearchArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return top_bytes<Chunk, Threads>(); }
  static HSM_HOST_DEVICE int64_t items(const Args& args) {
    return int64_t{args.queries} * args.pairs_a_round;
  }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockTop<Chunk, Threads, Ctx> top(ctx);
    for (int64_t slot = ctx.block(); slot < items(args); slot += ctx.blocks()) {
      const auto query = static_cast<int32_t>(slot / args.pairs_a_round);
      if (slot % args.pairs_a_round >= ctx.get(args.pair_count, query)) continue;
      const Ranked pair = ctx.get(args.pair, slot);
      const int64_t row = ctx.get(args.first_row, query) + pair.first;
      const Columns columns = leaf_columns(ctx, args.head, pair.second);
      const S log_sum = value_of(ctx.get(args.leaf_part, slot));
      const Ranked after = ctx.get(args.after, query);
      const double score = ctx.get(args.score, row);
      const double root = root_log_prob(ctx, args, row, args.head.plan.sizes.shortlist + pair.second);
      const double floor = ctx.get(args.best, int64_t{query + 1} * args.kept - 1).score;
      top.clear(args.kept - 1);
      top.offer(columns.count, [&](int64_t leaf) {
        const int32_t word = ctx.get(args.word_of_row, columns.first_word + leaf);
        if (!allowed(ctx, args, word)) return no_rank();
        // Rounding may lift it above 0, and the score above the pair's bound.
        const S log_prob = smaller(ctx.get(args.leaf_logit, slot * args.leaf_stride + leaf) - log_sum, S{0});
        const Ranked item{visible(score + (root + static_cast<double>(log_prob))), word, pair.first};
        return item.score >= floor && before(after, item) ? item : no_rank();
      });
      top.put_kept(args.pair_best, slot * args.kept, args.kept);
    }
  }
};

}  // namespace hsm::kernels::device
