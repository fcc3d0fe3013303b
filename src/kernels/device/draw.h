#pragma once
#include "kernels/device/draw_args.h"
#include "kernels/device/philox.h"
#include "kernels/device/search.h"

// Kernels that draw words from the whole vocabulary, at any temperature. A round: DrawColumn, SortPairs,
// LeafLogits, DrawLeaf; rounds until no draw is undecided. One that is decided takes no part in later rounds.

namespace hsm::kernels::device {

/// Two numbers in [0, 1) of a draw; see uniforms() of decode/word_draw.h.
struct UniformPair {
  double first;
  double second;
};
HSM_HOST_DEVICE double to_uniform(uint32_t low, uint32_t high) {
  return static_cast<double>(((static_cast<uint64_t>(high) << 32) | low) >> 11) * 0x1.0p-53;
}
HSM_HOST_DEVICE UniformPair uniforms(const DrawRequest& draw, uint64_t index, uint32_t key0, uint32_t key1) {
  const Words w = philox_words(draw.sequence, (draw.step << 24) | index, key0, key1);
  return {to_uniform(w.word[0], w.word[1]), to_uniform(w.word[2], w.word[3])};
}

/// Shared memory of a BlockDraw.
template <int Threads>
constexpr int64_t draw_bytes() {
  return 2 * shared_piece(Threads * sizeof(double));
}

/// A draw among weights exp(e_i) by a block. Each thread has a run of consecutive ones.
template <int Threads, class Ctx>
class BlockDraw {
 public:
  HSM_DEVICE explicit BlockDraw(Ctx& ctx)
      : ctx_(ctx), most_(ctx.template shared<double>(Threads)), sums_(ctx.template shared<double>(Threads)) {}

  /// All threads: `count` weights.
  HSM_DEVICE void begin(int64_t count) {
    count_ = count;
    each_ = divide_up<int64_t>(count, Threads);
  }
  /// f(i) for those of this thread.
  template <class F>
  HSM_DEVICE void each_own(F f) {
    const int64_t end = end_of(ctx_.thread());
    for (int64_t i = first_of(ctx_.thread()); i < end; ++i) f(i);
  }
  /// All threads: the sums of the weights relative to the largest. `exponent_at(i)` is asked by the thread
  /// that has i.
  template <class ExponentAt>
  HSM_DEVICE void measure(ExponentAt exponent_at) {
    double mine = minus_infinity<double>();
    each_own([&](int64_t i) { mine = larger(mine, exponent_at(i)); });
    ctx_.put(most_, ctx_.thread(), mine);
    ctx_.sync(HSM_SITE);  // every thread's largest is there
    largest_ = minus_infinity<double>();
    for (int t = 0; t < Threads; ++t) largest_ = larger(largest_, ctx_.get(most_, t));
    double sum = 0;
    if (largest_ > minus_infinity<double>()) {
      each_own([&](int64_t i) { sum += exponential(exponent_at(i) - largest_); });
    }
    ctx_.put(sums_, ctx_.thread(), sum);
    ctx_.sync(HSM_SITE);  // every thread's sum is there, and what exponents are made of
  }

  /// One thread, after measure(): the logarithm of the sum of all weights; −∞ without any.
  HSM_DEVICE double log_mass() const {
    return largest_ > minus_infinity<double>() ? largest_ + logarithm(total()) : largest_;
  }
  /// One thread: an index, drawn by u in [0, 1) in proportion to its weight; −1 without any.
  template <class ExponentAt>
  HSM_DEVICE int64_t pick(double u, ExponentAt exponent_at) const {
    double left = u * total();
    const int64_t thread = passed(0, Threads, left, [&](int64_t t) { return ctx_.get(sums_, t); });
    if (thread < 0) return -1;
    return passed(first_of(static_cast<int>(thread)), end_of(static_cast<int>(thread)), left,
                  [&](int64_t i) { return exponential(exponent_at(i) - largest_); });
  }

 private:
  [[nodiscard]] HSM_DEVICE int64_t first_of(int thread) const { return smaller(thread * each_, count_); }
  [[nodiscard]] HSM_DEVICE int64_t end_of(int thread) const { return first_of(thread + 1); }
  [[nodiscard]] HSM_DEVICE double total() const {
    double sum = 0;
    for (int t = 0; t < Threads; ++t) sum += ctx_.get(sums_, t);
    return sum;
  }
  // The index at which the sum of the weights passes `left`, of which what is before it is taken; the last
  // with a weight where rounding leaves something over.
  template <class WeightAt>
  HSM_DEVICE static int64_t passed(int64_t first, int64_t end, double& left, WeightAt weight_at) {
    int64_t last = -1;
    for (int64_t i = first; i < end; ++i) {
      const double weight = weight_at(i);
      if (!(weight > 0)) continue;
      last = i;
      if (left < weight) break;
      left -= weight;
    }
    return last;
  }

  Ctx& ctx_;
  typename Ctx::template Shared<double> most_;
  typename Ctx::template Shared<double> sums_;
  int64_t count_ = 0;
  int64_t each_ = 0;
  double largest_ = 0;
};

template <class P, class Ctx>
HSM_DEVICE bool may_be_drawn(Ctx& ctx, const DrawArgs<P>& args, const DrawRequest& request,
                             int64_t word_row) {
  if (word_row == args.search.end_row && request.end_allowed == 0) return false;
  return allowed(ctx, args.search, ctx.get(args.search.word_of_row, word_row));
}

template <class P, class Ctx>
HSM_DEVICE double root_score(Ctx& ctx, const DrawArgs<P>& args, int64_t row, int64_t column,
                             typename P::Sum log_sum) {
  const auto z = ctx.get(args.search.root_logit, row * args.search.head.plan.sizes.root() + column);
  return static_cast<double>(smaller(z - log_sum, typename P::Sum{0}));
}

/// Item: a draw. Proposes a column of the root by the bounds of their masses: decides for a word, or asks for
/// a cluster to be expanded.
template <class P, int Threads = 256>
struct DrawColumn {
  using Args = DrawArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return draw_bytes<Threads>(); }
  static int64_t items(const Args& args) { return args.search.queries; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockDraw<Threads, Ctx> block(ctx);
    const int64_t root = args.search.head.plan.sizes.root();
    for (int32_t draw = ctx.block(); draw < args.search.queries; draw += ctx.blocks()) {
      const int32_t proposals = args.starts ? 0 : ctx.get(args.drawn, draw).proposals;
      if (!args.starts && ctx.get(args.drawn, draw).word != kUndecided) {
        if (ctx.thread() == 0) ctx.put(args.search.pair_count, draw, 0);
        continue;
      }
      const DrawRequest request = ctx.get(args.request, draw);
      const S log_sum = joined_root(ctx, args.search, request.row);
      const auto weight_at = [&](int64_t column) {
        return static_cast<double>(ctx.get(args.log_weight, draw * root + column));
      };
      block.begin(root);
      if (args.starts) {
        block.each_own([&](int64_t column) {
          ctx.put(args.log_weight, draw * root + column,
                  static_cast<S>(bound(ctx, args, request, column, log_sum)));
        });
      }
      block.measure(weight_at);
      if (ctx.thread() != 0) continue;
      const double u = uniforms(request, 2 * static_cast<uint64_t>(proposals), args.key0, args.key1).first;
      decide(ctx, args, draw, request.row, block.pick(u, weight_at), log_sum, proposals + 1);
    }
  }

 private:
  /// Logarithm of what a column's mass is at most.
  template <class Ctx>
  static HSM_DEVICE double bound(Ctx& ctx, const Args& args, const DrawRequest& request, int64_t column,
                                 S log_sum) {
    const double weight = args.power * root_score(ctx, args, request.row, column, log_sum);
    const HeadSizes& sizes = args.search.head.plan.sizes;
    int64_t first = column;
    int64_t words = 1;
    if (column >= sizes.shortlist) {
      const Columns leaves = leaf_columns(ctx, args.search.head, static_cast<int>(column - sizes.shortlist));
      first = leaves.first_word;
      words = leaves.count;
    }
    if (words == 1 && !may_be_drawn(ctx, args, request, first)) return minus_infinity<double>();
    const double slack = 1 - args.power;
    return words > 1 && slack > 0 ? weight + slack * logarithm(static_cast<double>(words)) : weight;
  }

  template <class Ctx>
  static HSM_DEVICE void decide(Ctx& ctx, const Args& args, int32_t draw, int64_t row, int64_t column,
                                S log_sum, int32_t proposals) {
    const HeadSizes& sizes = args.search.head.plan.sizes;
    int64_t word_row = column;
    bool expand = false;
    if (column >= sizes.shortlist) {
      const auto cluster = static_cast<int32_t>(column - sizes.shortlist);
      const Columns leaves = leaf_columns(ctx, args.search.head, cluster);
      word_row = leaves.first_word;
      expand = leaves.count > 1;
      if (expand) ctx.put(args.search.pair, draw, Ranked{0, 0, cluster});
    }
    ctx.put(args.search.pair_count, draw, expand ? 1 : 0);
    DrawnWord result{0, kUndecided, proposals};
    if (column < 0) {
      result.word = kNothing;
      result.log_prob = root_score(ctx, args, row, 0, log_sum);  // any: not a number where the row isn't
    } else if (!expand) {
      result.word = ctx.get(args.search.word_of_row, word_row);
      result.log_prob = root_score(ctx, args, row, column, log_sum);
    }
    ctx.put(args.drawn, draw, result);
  }
};

/// Item: a draw whose cluster was expanded. Accepts the cluster and draws one of its words, or puts its mass
/// in the place of the bound.
template <class P, int Threads = 128>
struct DrawLeaf {
  using Args = DrawArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) { return draw_bytes<Threads>(); }
  static int64_t items(const Args& args) { return args.search.queries; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    BlockDraw<Threads, Ctx> block(ctx);
    const HeadSizes& sizes = args.search.head.plan.sizes;
    for (int32_t draw = ctx.block(); draw < args.search.queries; draw += ctx.blocks()) {
      if (ctx.get(args.search.pair_count, draw) == 0) continue;
      const DrawRequest request = ctx.get(args.request, draw);
      const int32_t cluster = ctx.get(args.search.pair, draw).second;
      const Columns leaves = leaf_columns(ctx, args.search.head, cluster);
      const S leaf_sum = value_of(ctx.get(args.search.leaf_part, draw));
      const auto score_at = [&](int64_t leaf) {
        const S z = ctx.get(args.search.leaf_logit, draw * args.search.leaf_stride + leaf);
        return static_cast<double>(smaller(z - leaf_sum, S{0}));
      };
      const auto exponent_at = [&](int64_t leaf) {
        return may_be_drawn(ctx, args, request, leaves.first_word + leaf) ? args.power * score_at(leaf)
                                                                          : minus_infinity<double>();
      };
      block.begin(leaves.count);
      block.measure(exponent_at);
      if (ctx.thread() != 0) continue;
      const int64_t column = sizes.shortlist + cluster;
      const double root =
          root_score(ctx, args, request.row, column, joined_root(ctx, args.search, request.row));
      DrawnWord result = ctx.get(args.drawn, draw);
      const auto proposal = 2 * static_cast<uint64_t>(result.proposals - 1);
      const double log_mass = args.power * root + block.log_mass();
      const int64_t weight = draw * sizes.root() + column;
      const double acceptance = log_mass - static_cast<double>(ctx.get(args.log_weight, weight));
      const double chance = uniforms(request, proposal, args.key0, args.key1).second;
      if (!(logarithm(chance) < acceptance)) {
        ctx.put(args.log_weight, weight, static_cast<S>(log_mass));
        // What is not a number ends the draw, and shows.
        if (!(leaf_sum == leaf_sum)) ctx.put(args.drawn, draw, {static_cast<double>(leaf_sum), kNothing, 0});
        continue;
      }
      const int64_t leaf =
          block.pick(uniforms(request, proposal + 1, args.key0, args.key1).first, exponent_at);
      result.word = ctx.get(args.search.word_of_row, leaves.first_word + leaf);
      result.log_prob = root + score_at(leaf);
      ctx.put(args.drawn, draw, result);
    }
  }
};

}  // namespace hsm::kernels::device
