#pragma once
#include "kernels/device/block_scan.h"
#include "kernels/device/head_args.h"

// The tokens of a batch, sorted by the cluster of their target: a stable counting sort without atomics, and
// the lists from which the later kernels find their items. Three launches: count, scan, scatter.

namespace hsm::kernels::device {

/// More clusters than this do not fit a warp's counters in shared memory.
constexpr int64_t kMostClusters = 50000;

template <class P>
struct TokenKey {
  /// The key (see HeadState) of a target row.
  template <class Ctx>
  static HSM_DEVICE int of(Ctx& ctx, const HeadArgs<P>& args, int32_t target) {
    const int none = static_cast<int>(args.plan.sizes.clusters);
    if (target < args.plan.sizes.shortlist) return none;
    const int cluster = ctx.get(args.in.cluster_of_row, target);
    const int64_t rows =
        ctx.get(args.in.cluster_offsets, cluster + 1) - ctx.get(args.in.cluster_offsets, cluster);
    return rows > 1 ? cluster : none;
  }
};

/// Item: a piece of the tokens, counted by one warp.
template <class P>
struct CountKeys {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = 32;
  static int64_t shared_bytes(const Args& args) {
    return divide_up<int64_t>(args.plan.sizes.keys() * 4, 128) * 128;
  }
  static int64_t items(const Args& args) { return args.plan.pieces; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    auto counts = ctx.template shared<int32_t>(static_cast<int>(args.plan.sizes.keys()));
    for (int64_t piece = ctx.block(); piece < args.plan.pieces; piece += ctx.blocks()) {
      count(ctx, args, counts, piece);
    }
  }

  static HSM_DEVICE int count_bits(uint32_t mask) {
#ifdef __CUDA_ARCH__
    return __popc(mask);
#else
    return __builtin_popcount(mask);
#endif
  }

 private:
  template <class Ctx>
  static HSM_DEVICE void count(Ctx& ctx, const Args& args, typename Ctx::template Shared<int32_t> counts,
                               int64_t piece) {
    const int keys = static_cast<int>(args.plan.sizes.keys());
    for (int key = ctx.lane(); ctx.guard(HSM_SITE, key < keys); key += 32) ctx.put(counts, key, 0);
    ctx.syncwarp(HSM_SITE);  // counts are zero

    const int64_t first = piece * args.plan.tokens_a_piece;
    const int64_t end = smaller(first + args.plan.tokens_a_piece, args.plan.sizes.tokens);
    for (int64_t base = first; base < end; base += 32) {
      const int64_t token = base + ctx.lane();
      int key = -1;
      if (ctx.guard(HSM_SITE, token < end)) {
        key = TokenKey<P>::of(ctx, args, ctx.get(args.in.targets, token));
        ctx.put(args.state.key, token, key);
      }
      const uint32_t same = ctx.match(key);
      if (key >= 0 && (same & ((1U << ctx.lane()) - 1U)) == 0) {
        ctx.put(counts, key, ctx.get(counts, key) + count_bits(same));
      }
      ctx.syncwarp(HSM_SITE);  // the next 32 tokens' leaders may be other lanes
    }
    for (int key = ctx.lane(); ctx.guard(HSM_SITE, key < keys); key += 32) {
      ctx.put(args.state.counts, piece * keys + key, ctx.get(counts, key));
    }
  }
};

/// One block: from the counts, where each piece's tokens of a key go, and the prefixes of HeadState.
template <class P, int Threads = 1024>
struct ScanKeys {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = Threads;
  static int64_t shared_bytes(const Args&) { return 2 * kThreads * static_cast<int64_t>(sizeof(Sums)); }
  static int64_t items(const Args&) { return 1; }

  /// What is summed over the keys.
  struct Sums {
    int32_t tokens, rows, leaf_items, weight_items;
  };

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    const int keys = static_cast<int>(args.plan.sizes.keys());
    const int each = divide_up(keys, ctx.threads());
    const int first = smaller(ctx.thread() * each, keys);
    const int end = smaller(first + each, keys);
    auto memory = ctx.template shared<Sums>(2 * ctx.threads());

    Sums mine{0, 0, 0, 0};
    for (int key = first; key < end; ++key) mine = add(mine, sums_of(ctx, args, key, count(ctx, args, key)));
    Sums before = block_exclusive(ctx, memory, mine, Sums{0, 0, 0, 0}, add);
    for (int key = first; key < end; ++key) {
      write_prefixes(ctx, args, key, before);
      int32_t place = before.tokens;
      for (int64_t piece = 0; piece < args.plan.pieces; ++piece) {
        const int64_t at = piece * keys + key;
        const int32_t tokens = ctx.get(args.state.counts, at);
        ctx.put(args.state.counts, at, place);
        place += tokens;
      }
      before = add(before, sums_of(ctx, args, key, place - before.tokens));
      if (key == keys - 1) {
        write_prefixes(ctx, args, keys, before);
        ctx.put(args.out.word_row_count, 0, args.plan.sizes.shortlist + before.rows);
      }
    }
    ctx.sync(HSM_SITE);  // token_start and row_start are whole, the scan's memory is free

    Sums tiles{0, 0, 0, 0};
    for (int key = first; key < end; ++key) tiles.tokens += tiles_ending_at(ctx, args, key);
    tiles = block_exclusive(ctx, memory, tiles, Sums{0, 0, 0, 0}, add);
    for (int key = first; key < end; ++key) {
      ctx.put(args.state.tile_start, key, tiles.tokens);
      tiles.tokens += tiles_ending_at(ctx, args, key);
      if (key == keys - 1) ctx.put(args.state.tile_start, keys, tiles.tokens);
    }
  }

 private:
  static HSM_DEVICE Sums add(const Sums& a, const Sums& b) {
    return {a.tokens + b.tokens, a.rows + b.rows, a.leaf_items + b.leaf_items,
            a.weight_items + b.weight_items};
  }

  template <class Ctx>
  static HSM_DEVICE int32_t count(Ctx& ctx, const Args& args, int key) {
    int32_t tokens = 0;
    for (int64_t piece = 0; piece < args.plan.pieces; ++piece) {
      tokens += ctx.get(args.state.counts, piece * args.plan.sizes.keys() + key);
    }
    return tokens;
  }

  template <class Ctx>
  static HSM_DEVICE Sums sums_of(Ctx& ctx, const Args& args, int key, int32_t tokens) {
    if (tokens == 0 || key == args.plan.sizes.clusters) return {tokens, 0, 0, 0};
    const auto rows = static_cast<int32_t>(ctx.get(args.in.cluster_offsets, key + 1) -
                                           ctx.get(args.in.cluster_offsets, key));
    const HeadTiles& tiles = args.plan.tiles;
    const auto chunks = static_cast<int32_t>(divide_up<int64_t>(rows, args.plan.leaf_chunk));
    return {tokens, rows, divide_up(tokens, tiles.leaf_tokens) * chunks, divide_up(rows, tiles.x_rows)};
  }

  template <class Ctx>
  static HSM_DEVICE void write_prefixes(Ctx& ctx, const Args& args, int key, const Sums& before) {
    ctx.put(args.state.token_start, key, before.tokens);
    ctx.put(args.state.row_start, key, before.rows);
    ctx.put(args.state.leaf_start, key, before.leaf_items);
    ctx.put(args.state.weight_start, key, before.weight_items);
  }

  // dH's tiles of a bin are counted at its last key. A bin: keys whose row_start lies in the same
  // rows_a_bin, so that a tile meets no more than about that many leaf rows.
  template <class Ctx>
  static HSM_DEVICE int32_t tiles_ending_at(Ctx& ctx, const Args& args, int key) {
    const auto& state = args.state;
    const int64_t bin = ctx.get(state.row_start, key) / args.plan.rows_a_bin;
    const int keys = static_cast<int>(args.plan.sizes.keys());
    if (key + 1 < keys && ctx.get(state.row_start, key + 1) / args.plan.rows_a_bin == bin) return 0;
    int low = 0;
    int high = key;  // the bin's first key, by bisection
    while (low < high) {
      const int middle = (low + high) / 2;
      if (ctx.get(state.row_start, middle) / args.plan.rows_a_bin < bin) {
        low = middle + 1;
      } else {
        high = middle;
      }
    }
    const int32_t tokens = ctx.get(state.token_start, key + 1) - ctx.get(state.token_start, low);
    return divide_up(tokens, args.plan.tiles.x_rows);
  }
};

/// Item: a piece of the tokens, put in their places by one warp.
template <class P>
struct ScatterKeys {
  using Args = HeadArgs<P>;
  static constexpr int kThreads = 32;
  static int64_t shared_bytes(const Args& args) { return CountKeys<P>::shared_bytes(args); }
  static int64_t items(const Args& args) { return args.plan.pieces; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    auto cursors = ctx.template shared<int32_t>(static_cast<int>(args.plan.sizes.keys()));
    for (int64_t piece = ctx.block(); piece < args.plan.pieces; piece += ctx.blocks()) {
      scatter(ctx, args, cursors, piece);
    }
  }

 private:
  template <class Ctx>
  static HSM_DEVICE void scatter(Ctx& ctx, const Args& args, typename Ctx::template Shared<int32_t> cursors,
                                 int64_t piece) {
    const int keys = static_cast<int>(args.plan.sizes.keys());
    for (int key = ctx.lane(); ctx.guard(HSM_SITE, key < keys); key += 32) {
      ctx.put(cursors, key, ctx.get(args.state.counts, piece * keys + key));
    }
    ctx.syncwarp(HSM_SITE);  // cursors are set

    const int64_t first = piece * args.plan.tokens_a_piece;
    const int64_t end = smaller(first + args.plan.tokens_a_piece, args.plan.sizes.tokens);
    for (int64_t base = first; base < end; base += 32) {
      const int64_t token = base + ctx.lane();
      const int key = ctx.guard(HSM_SITE, token < end) ? ctx.get(args.state.key, token) : -1;
      const uint32_t same = ctx.match(key);
      const int rank = CountKeys<P>::count_bits(same & ((1U << ctx.lane()) - 1U));
      const int cursor = key >= 0 ? ctx.get(cursors, key) : 0;
      if (key >= 0) ctx.put(args.state.order, cursor + rank, static_cast<int32_t>(token));
      ctx.syncwarp(HSM_SITE);  // cursors are read before they move
      if (key >= 0 && rank == 0) ctx.put(cursors, key, cursor + CountKeys<P>::count_bits(same));
      ctx.syncwarp(HSM_SITE);  // and have moved before the next 32 tokens
    }
  }
};

}  // namespace hsm::kernels::device
