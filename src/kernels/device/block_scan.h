#pragma once
#include "kernels/device/context.h"

namespace hsm::kernels::device {

/// Sum, in the order of the threads, of the values of those before this one; `zero` for the first. All
/// threads of the block take part. `memory`: 2 values a thread, and a barrier before it is used again.
/// Doubling steps between its two halves.
template <class Ctx, class T, class Add>
HSM_DEVICE T block_exclusive(Ctx& ctx, typename Ctx::template Shared<T> memory, const T& mine, const T& zero,
                             Add add) {
  int from = 0;
  ctx.put(memory, ctx.thread(), mine);
  for (int distance = 1; distance < ctx.threads(); distance *= 2) {
    ctx.sync(HSM_SITE);  // this half is whole, and the other one has been read
    T sum = ctx.get(memory, from + ctx.thread());
    if (ctx.thread() >= distance) sum = add(ctx.get(memory, from + ctx.thread() - distance), sum);
    from = ctx.threads() - from;
    ctx.put(memory, from + ctx.thread(), sum);
  }
  ctx.sync(HSM_SITE);  // the last half is whole
  return ctx.thread() == 0 ? zero : ctx.get(memory, from + ctx.thread() - 1);
}

}  // namespace hsm::kernels::device
