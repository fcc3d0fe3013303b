#pragma once
#include "kernels/device/head_forward.h"

namespace hsm::kernels::device {

/// One block: joins each token's parts and adds the losses, in double and in a fixed order.
template <class P, int Threads = 1024>
struct MergeLoss {
  using Args = HeadArgs<P>;
  using S = typename P::Sum;
  static constexpr int kThreads = Threads;
  static constexpr int64_t shared_bytes(const Args&) {
    return Threads * static_cast<int64_t>(sizeof(double));
  }
  static int64_t items(const Args&) { return 1; }

  template <class Ctx>
  static HSM_DEVICE void run(Ctx& ctx, const Args& args) {
    auto sums = ctx.template shared<double>(Threads);
    double mine = 0;
    for (int64_t token = ctx.thread(); ctx.guard(HSM_SITE, token < args.plan.sizes.tokens);
         token += Threads) {
      mine += static_cast<double>(merge(ctx, args, token));
    }
    ctx.put(sums, ctx.thread(), mine);
    for (int half = Threads / 2; half > 0; half /= 2) {
      ctx.sync(HSM_SITE);  // sums below 2 · half are whole
      if (ctx.thread() < half) {
        ctx.put(sums, ctx.thread(), ctx.get(sums, ctx.thread()) + ctx.get(sums, ctx.thread() + half));
      }
    }
    if (ctx.thread() == 0) ctx.put(args.out.total_loss, 0, static_cast<S>(ctx.get(sums, 0)));
  }

 private:
  template <class Ctx>
  static HSM_DEVICE S log_sum(Ctx& ctx, const Args& args, int64_t first, int64_t count, int64_t token) {
    LogSum<S> total = no_terms<S>();
    for (int64_t part = first; part < first + count; ++part) {
      total = join(total, LogSum<S>{ctx.get(args.state.workspace, part_place(args, part, token)),
                                    ctx.get(args.state.workspace, part_place(args, part, token) + 1)});
    }
    return value_of(total);
  }

  template <class Ctx>
  static HSM_DEVICE S merge(Ctx& ctx, const Args& args, int64_t token) {
    const auto& state = args.state;
    const S root = log_sum(ctx, args, 0, args.plan.root_splits, token);
    ctx.put(state.root_log_sum, token, root);
    S loss = 0;
    if (ctx.get(args.in.targets, token) >= 0) loss = root - ctx.get(state.root_target_logit, token);
    const int key = ctx.get(state.key, token);
    if (key < args.plan.sizes.clusters) {
      const int64_t rows = ctx.get(args.in.cluster_offsets, key + 1) - ctx.get(args.in.cluster_offsets, key);
      const S leaf = log_sum(ctx, args, args.plan.root_splits, divide_up(rows, args.plan.leaf_chunk), token);
      ctx.put(state.leaf_log_sum, token, leaf);
      loss += leaf - ctx.get(state.leaf_target_logit, token);
    }
    ctx.put(state.loss, token, loss);
    return loss;
  }
};

}  // namespace hsm::kernels::device
