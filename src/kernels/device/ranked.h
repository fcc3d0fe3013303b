#pragma once
#include "kernels/device/context.h"

namespace hsm::kernels::device {

/// Something with a score, and the two numbers that break ties: higher score, then smaller first, then
/// smaller second number. A next word: (log-probability with its hypothesis, word id, parent). A pair to
/// expand: (bound, parent, cluster).
struct Ranked {
  double score;
  int32_t first;
  int32_t second;
};

constexpr int32_t kLargestNumber = 0x7FFFFFFF;

HSM_HOST_DEVICE bool before(const Ranked& a, const Ranked& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.first != b.first) return a.first < b.first;
  return a.second < b.second;
}

/// Comes after everything that has a score above −∞.
HSM_HOST_DEVICE Ranked no_rank() {
  return {minus_infinity<double>(), kLargestNumber, kLargestNumber};
}

/// Comes before everything.
HSM_HOST_DEVICE Ranked first_rank() {
  return {-minus_infinity<double>(), -1, -1};
}

/// A score that is not a number counts as the best, so that whoever reads a list sees that there is one.
HSM_HOST_DEVICE double visible(double score) {
  return score == score ? score : -minus_infinity<double>();
}

/// Shared memory of a BlockTop.
template <int Chunk, int Threads>
constexpr int64_t top_bytes() {
  return shared_piece(2 * Chunk * sizeof(Ranked)) + shared_piece(Threads / 32 * 4);
}

/// The best Chunk of what a block is offered, sorted, in shared memory. Offers come in chunks, one item a
/// place; a chunk in which nothing beats the worst kept is dropped at the cost of two barriers, another is
/// sorted and merged (bitonic). Chunk: a power of two, a multiple of Threads.
template <int Chunk, int Threads, class Ctx>
class BlockTop {
 public:
  static_assert(Chunk % Threads == 0 && (Chunk & (Chunk - 1)) == 0, "whole rounds of 2^n");

  HSM_DEVICE explicit BlockTop(Ctx& ctx)
      : ctx_(ctx),
        items_(ctx.template shared<Ranked>(2 * Chunk)),
        better_(ctx.template shared<int32_t>(Threads / 32)) {}

  /// Forgets everything. `worst_needed`: the place, below Chunk, whose item the caller needs last.
  HSM_DEVICE void clear(int worst_needed) {
    worst_ = worst_needed;
    ctx_.sync(HSM_SITE);  // what was kept has been read
    for (int i = ctx_.thread(); i < Chunk; i += Threads) ctx_.put(items_, i, no_rank());
    ctx_.sync(HSM_SITE);  // the list is empty
  }

  /// `item_at(i)`, 0 ≤ i < count: no_rank() where there is none.
  template <class ItemAt>
  HSM_DEVICE void offer(int64_t count, ItemAt item_at) {
    for (int64_t base = 0; base < count; base += Chunk) {
      const Ranked worst = kept(worst_);
      bool better = false;
      for (int i = ctx_.thread(); i < Chunk; i += Threads) {
        const Ranked item = ctx_.guard(HSM_SITE, base + i < count) ? item_at(base + i) : no_rank();
        better = better || (item.score > minus_infinity<double>() && before(item, worst));
        ctx_.put(items_, Chunk + i, item);
      }
      const uint32_t same = ctx_.match(better ? 1 : 0);
      if (ctx_.lane() == 0) ctx_.put(better_, ctx_.warp(), better || same != 0xFFFFFFFFU ? 1 : 0);
      ctx_.sync(HSM_SITE);  // the chunk is whole, each warp has said whether it matters
      int32_t any = 0;
      for (int w = 0; w < Threads / 32; ++w) any |= ctx_.get(better_, w);
      if (any != 0) {
        sort_chunk();
        merge();
      } else {
        ctx_.sync(HSM_SITE);  // all have read what the next chunk overwrites
      }
    }
  }

  [[nodiscard]] HSM_DEVICE Ranked kept(int i) const { return ctx_.get(items_, i); }
  /// Stores the best `count`, at most Chunk, from place `at` on.
  HSM_DEVICE void put_kept(View<Ranked> list, int64_t at, int count) const {
    for (int i = ctx_.thread(); i < count; i += Threads) ctx_.put(list, at + i, kept(i));
  }

 private:
  // Exchanges items i < j of a pair unless they stand as `in_order` says.
  HSM_DEVICE void exchange(int i, int j, bool best_first) {
    const Ranked a = ctx_.get(items_, i);
    const Ranked b = ctx_.get(items_, j);
    if (before(b, a) == best_first) {
      ctx_.put(items_, i, b);
      ctx_.put(items_, j, a);
    }
  }
  // One step of a bitonic network over Chunk items from `at` on: pairs `distance` apart.
  template <class BestFirst>
  HSM_DEVICE void network_step(int at, int distance, BestFirst best_first) {
    for (int t = ctx_.thread(); t < Chunk / 2; t += Threads) {
      const int i = t / distance * 2 * distance + t % distance;
      exchange(at + i, at + i + distance, best_first(i));
    }
    ctx_.sync(HSM_SITE);  // the step is whole
  }

  // Worst first, so that what is kept and the chunk are one bitonic sequence.
  HSM_DEVICE void sort_chunk() {
    for (int size = 2; size <= Chunk; size *= 2) {
      for (int distance = size / 2; distance > 0; distance /= 2) {
        network_step(Chunk, distance, [size](int i) { return size < Chunk && (i & size) != 0; });
      }
    }
  }
  HSM_DEVICE void merge() {
    for (int i = ctx_.thread(); i < Chunk; i += Threads) exchange(i, Chunk + i, true);
    ctx_.sync(HSM_SITE);  // the best Chunk of both are kept
    for (int distance = Chunk / 2; distance > 0; distance /= 2) {
      network_step(0, distance, [](int) { return true; });
    }
  }

  Ctx& ctx_;
  typename Ctx::template Shared<Ranked> items_;
  typename Ctx::template Shared<int32_t> better_;
  int worst_ = 0;
};

}  // namespace hsm::kernels::device
