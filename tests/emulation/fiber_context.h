#pragma once
#include <algorithm>
#include <array>
#include <cstring>
#include <deque>
#include <memory>

#include "emulation/lane_context.h"

namespace hsm::emulation {

class FiberBlock;

/// A lane that runs as a fiber and may be left for another at every call: an adversary draws from the seed
/// how far ahead which lanes run. Copies poison their target and land at a random moment before wait(). What
/// a lane stores is seen by itself at once, by others at a random moment before its next barrier: collectives
/// of a warp order no memory.
class FiberContext : public LaneContext<FiberContext> {
 public:
  FiberContext(FiberBlock& fibers, BlockState& block, int thread)
      : LaneContext<FiberContext>(block, thread), fibers_(fibers) {}

  template <class T>
  std::array<T, 32> exchange(T value) {
    static_assert(sizeof(T) <= 32);
    std::array<unsigned char, 32> bytes{};
    std::memcpy(bytes.data(), &value, sizeof value);
    const auto all = exchange_bytes(bytes);
    std::array<T, 32> values;
    for (size_t i = 0; i < 32; ++i) std::memcpy(&values[i], all[i].data(), sizeof value);
    return values;
  }

  template <class T>
  std::remove_const_t<T> load(T* from) const {
    using Value = std::remove_const_t<T>;
    for (auto late = stores_.rbegin(); late != stores_.rend(); ++late) {
      if (late->target != from) continue;
      Value value;
      std::memcpy(&value, late->bytes.data(), sizeof value);
      return value;
    }
    return *from;
  }
  template <class T>
  void store(T* to, T value) {
    static_assert(sizeof(T) <= 16);
    Store late{to, sizeof value, {}};
    std::memcpy(late.bytes.data(), &value, sizeof value);
    stores_.push_back(late);
    if (stores_.size() > 64) drain(1);
  }
  /// Lets the oldest stores be seen by all.
  void drain(size_t count);

  void step();
  void block_barrier(int site);
  void warp_barrier(int site);
  void note_site(int site);
  void start_copy(void* target, const void* source);
  void commit_copies();
  void wait_copies(int left);

 private:
  struct Copy {
    void* target;
    const void* source;  ///< null: zeros
    int group;
  };
  struct Store {
    void* target;
    size_t size;
    std::array<unsigned char, 16> bytes;
  };
  static void land(const Copy& copy);
  std::array<std::array<unsigned char, 32>, 32> exchange_bytes(const std::array<unsigned char, 32>& mine);

  FiberBlock& fibers_;
  std::deque<Copy> copies_;
  std::deque<Store> stores_;
  int group_ = 0;
};

/// Runs a body in all lanes of one block.
class FiberBlock {
 public:
  FiberBlock(BlockState& block, const Options& options);
  ~FiberBlock();
  FiberBlock(const FiberBlock&) = delete;
  FiberBlock& operator=(const FiberBlock&) = delete;

  /// Throws what a lane threw, or Violation when lanes wait for what never comes.
  template <class Body, class Context = FiberContext>
  void run(const typename Body::Args& args) {
    run_lanes([&](BlockState& block, int thread) {
      Context context(*this, block, thread);
      Body::run(context, args);
      context.drain(~size_t{0});
    });
  }

 private:
  friend class FiberContext;
  struct Impl;
  template <class F>
  void run_lanes(F f) {
    run_function([](const void* function, BlockState& block,
                    int thread) { (*static_cast<const F*>(function))(block, thread); },
                 &f);
  }
  void run_function(void (*call)(const void*, BlockState&, int), const void* function);

  std::unique_ptr<Impl> impl_;
};

/// Runs Body as a grid of at most `most_blocks`, one after the other in an order drawn from the seed.
template <class Body, class Context = FiberContext>
void emulate(const typename Body::Args& args, int most_blocks, const Options& options) {
  const int blocks = static_cast<int>(std::min<int64_t>(Body::items(args), most_blocks));
  Dice dice(options.seed ^ 0x5EED);
  std::vector<int> order;
  for (int i = 0; i < blocks; ++i) order.insert(order.begin() + dice.below(i + 1), i);
  for (const int index : order) {
    BlockState block(index, blocks, Body::kThreads, static_cast<size_t>(Body::shared_bytes(args)), options);
    FiberBlock(block, options).run<Body, Context>(args);
  }
}

}  // namespace hsm::emulation
