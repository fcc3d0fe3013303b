#pragma once
#include <algorithm>
#include <array>
#include <atomic>
#include <barrier>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "emulation/lane_context.h"

namespace hsm::emulation {

/// What the lanes of a block meet through when each is a thread.
struct ThreadBlock {
  struct Warp {
    Warp() : barrier(32) {}
    std::barrier<> barrier;
    std::atomic<int64_t> arrived{0};
    // Two slots a lane, used in turn: a lane can be one exchange ahead of another, not two.
    std::array<std::array<std::array<std::atomic<uint64_t>, 4>, 32>, 2> slots{};
  };

  explicit ThreadBlock(int threads) : barrier(threads) {
    for (int i = 0; i < threads / 32; ++i) warps.push_back(std::make_unique<Warp>());
  }

  std::barrier<> barrier;
  std::vector<std::unique_ptr<Warp>> warps;
};

/// A lane that is a thread of its own, for ThreadSanitizer: barriers order memory, collectives of a warp
/// don't (they meet through relaxed atomics), so an access that only a collective seems to order is reported.
class ThreadContext : public LaneContext<ThreadContext> {
 public:
  ThreadContext(ThreadBlock& threads, BlockState& block, int thread)
      : LaneContext<ThreadContext>(block, thread), threads_(threads) {}

  void step() {}
  template <class T>
  std::remove_const_t<T> load(T* from) const {
    return *from;
  }
  template <class T>
  void store(T* to, T value) {
    *to = value;
  }
  void block_barrier(int) { threads_.barrier.arrive_and_wait(); }
  void warp_barrier(int) { warp_state().barrier.arrive_and_wait(); }
  void note_site(int) {}

  void start_copy(void* target, const void* source) { copies_.push_back({target, source, group_}); }
  void commit_copies() { ++group_; }
  void wait_copies(int left) {
    std::erase_if(copies_, [&](const Copy& copy) {
      if (copy.group >= group_ - left) return false;
      if (copy.source == nullptr) {
        std::memset(copy.target, 0, 16);
      } else {
        std::memcpy(copy.target, copy.source, 16);
      }
      return true;
    });
  }

  template <class T>
  std::array<T, 32> exchange(T value) {
    static_assert(sizeof(T) <= 32);
    ThreadBlock::Warp& warp = warp_state();
    auto& slots = warp.slots[static_cast<size_t>(exchanges_ % 2)];
    std::array<uint64_t, 4> words{};
    std::memcpy(words.data(), &value, sizeof value);
    for (size_t i = 0; i < 4; ++i) {
      slots[static_cast<size_t>(lane())][i].store(words[i], std::memory_order_relaxed);
    }
    meet(warp);
    std::array<T, 32> values;
    for (size_t from = 0; from < 32; ++from) {
      for (size_t i = 0; i < 4; ++i) words[i] = slots[from][i].load(std::memory_order_relaxed);
      std::memcpy(&values[from], words.data(), sizeof value);
    }
    return values;
  }

 private:
  struct Copy {
    void* target;
    const void* source;  ///< null: zeros
    int group;
  };
  ThreadBlock::Warp& warp_state() { return *threads_.warps[static_cast<size_t>(warp())]; }

  // Waits for all lanes without ordering, as far as the language knows, what else they read and wrote. On x86
  // the slots' stores come before the arrival all the same.
  void meet(ThreadBlock::Warp& warp) {
    ++exchanges_;
    warp.arrived.fetch_add(1, std::memory_order_relaxed);
    while (warp.arrived.load(std::memory_order_relaxed) < 32 * exchanges_) std::this_thread::yield();
  }

  ThreadBlock& threads_;
  std::vector<Copy> copies_;
  int group_ = 0;
  int64_t exchanges_ = 0;
};

/// Runs Body as a grid of at most `most_blocks`, one block after the other.
template <class Body>
void emulate_threads(const typename Body::Args& args, int most_blocks, const Options& options) {
  const int blocks = static_cast<int>(std::min<int64_t>(Body::items(args), most_blocks));
  for (int index = 0; index < blocks; ++index) {
    BlockState block(index, blocks, Body::kThreads, static_cast<size_t>(Body::shared_bytes(args)), options);
    ThreadBlock meeting(Body::kThreads);
    std::vector<std::thread> lanes;
    for (int thread = 0; thread < Body::kThreads; ++thread) {
      lanes.emplace_back([&, thread] {
        ThreadContext context(meeting, block, thread);
        Body::run(context, args);
      });
    }
    for (std::thread& lane : lanes) lane.join();
  }
}

}  // namespace hsm::emulation
