#include "emulation/fiber_context.h"

#include <boost/context/fiber.hpp>
#include <boost/context/pooled_fixedsize_stack.hpp>
#include <exception>

namespace hsm::emulation {

namespace {

namespace context = boost::context;

constexpr size_t kStackBytes = 128 * 1024;

enum class LaneState { ready, at_block, at_warp, finished };

}  // namespace

struct FiberBlock::Impl {
  struct Lane {
    context::fiber fiber;
    LaneState state = LaneState::ready;
    int site = 0;
  };
  struct Warp {
    int arrived = 0;
    std::array<std::array<std::array<unsigned char, 32>, 32>, 2> slots;
    std::array<int, 32> parity_of_lane{};
  };

  Impl(BlockState& block_state, const Options& options)
      : block(block_state),
        dice(options.seed * 1000003 + static_cast<uint64_t>(block_state.block)),
        stacks(kStackBytes),
        lanes(static_cast<size_t>(block_state.threads)),
        warps(static_cast<size_t>(block_state.threads / 32)) {
    // How long a lane runs before another may: from each call to as far as it can go.
    constexpr std::array<int, 4> kPatience{1, 7, 200, 1 << 30};
    patience = kPatience[static_cast<size_t>(dice.below(4))];
    // Who comes next: any lane, the first or the last that can run, or one of the same warp.
    choice = dice.below(4);
    memory_delay = dice.below(2) == 0 ? 2 : 50;
  }

  int pick() {
    const int count = static_cast<int>(lanes.size());
    const auto ready = [this](int i) { return lanes[static_cast<size_t>(i)].state == LaneState::ready; };
    int from = dice.below(count);
    if (choice == 1) from = 0;
    if (choice == 3) from = current / 32 * 32 + dice.below(32);
    if (choice == 2) {
      for (int i = count - 1; i >= 0; --i) {
        if (ready(i)) return i;
      }
      return -1;
    }
    for (int i = 0; i < count; ++i) {
      const int lane = (from + i) % count;
      if (ready(lane)) return lane;
    }
    return -1;
  }

  void yield(LaneState state, int site) {
    Lane& lane = lanes[static_cast<size_t>(current)];
    lane.state = state;
    lane.site = site;
    scheduler = std::move(scheduler).resume();
  }

  // All lanes wait: lets them go when they wait for one and the same barrier of the block.
  void release_block() {
    const int site = lanes[0].site;
    for (size_t i = 0; i < lanes.size(); ++i) {
      if (lanes[i].state != LaneState::at_block || lanes[i].site != site) {
        throw Violation("barrier: lane 0 is at line " + std::to_string(site & 0xFFF) + ", lane " +
                        std::to_string(i) + " at line " + std::to_string(lanes[i].site & 0xFFF) +
                        (lanes[i].state == LaneState::finished  ? " (finished)"
                         : lanes[i].state == LaneState::at_warp ? " (of its warp)"
                                                                : ""));
      }
    }
    for (Lane& lane : lanes) lane.state = LaneState::ready;
  }

  void arrive_at_warp(int thread, int site) {
    Warp& warp = warps[static_cast<size_t>(thread / 32)];
    const auto first = static_cast<size_t>(thread / 32 * 32);
    if (++warp.arrived < 32) {
      yield(LaneState::at_warp, site);
      return;
    }
    warp.arrived = 0;
    for (size_t i = first; i < first + 32; ++i) {
      if (static_cast<int>(i) == thread) continue;
      if (lanes[i].site != site) {
        throw Violation("collective: lanes of a warp meet at lines " + std::to_string(site & 0xFFF) +
                        " and " + std::to_string(lanes[i].site & 0xFFF));
      }
      lanes[i].state = LaneState::ready;
    }
  }

  BlockState& block;
  Dice dice;
  context::pooled_fixedsize_stack stacks;
  std::vector<Lane> lanes;
  std::vector<Warp> warps;
  context::fiber scheduler;
  std::exception_ptr failure;
  int current = 0;
  int patience = 1;
  int choice = 0;
  int memory_delay = 1;
  int64_t steps = 0;
  int left = 0;
};

FiberBlock::FiberBlock(BlockState& block, const Options& options)
    : impl_(std::make_unique<Impl>(block, options)) {}

FiberBlock::~FiberBlock() = default;

void FiberBlock::run_function(void (*call)(const void*, BlockState&, int), const void* function) {
  Impl& impl = *impl_;
  for (size_t i = 0; i < impl.lanes.size(); ++i) {
    impl.lanes[i].fiber = context::fiber(std::allocator_arg, impl.stacks,
                                         [&impl, i, call, function](context::fiber&& scheduler) {
                                           impl.scheduler = std::move(scheduler);
                                           try {
                                             call(function, impl.block, static_cast<int>(i));
                                           } catch (const context::detail::forced_unwind&) {
                                             throw;  // the block is given up
                                           } catch (...) {
                                             impl.failure = std::current_exception();
                                           }
                                           impl.lanes[i].state = LaneState::finished;
                                           return std::move(impl.scheduler);
                                         });
  }
  size_t finished = 0;
  while (finished < impl.lanes.size()) {
    const int next = impl.pick();
    if (next < 0) {
      impl.release_block();
      continue;
    }
    impl.current = next;
    impl.left = impl.patience;
    auto& lane = impl.lanes[static_cast<size_t>(next)];
    lane.fiber = std::move(lane.fiber).resume();
    if (impl.failure) std::rethrow_exception(impl.failure);
    if (lane.state == LaneState::finished) ++finished;
  }
}

void FiberContext::step() {
  FiberBlock::Impl& impl = *fibers_.impl_;
  if (!copies_.empty() && impl.dice.below(4) == 0) {
    const auto at = static_cast<size_t>(impl.dice.below(static_cast<int>(copies_.size())));
    land(copies_[at]);
    copies_.erase(copies_.begin() + static_cast<std::ptrdiff_t>(at));
  }
  if (!stores_.empty() && impl.dice.below(impl.memory_delay) == 0) drain(1);
  if (++impl.steps > state_.options.most_steps) throw Violation("the block does not end");
  if (--impl.left <= 0) impl.yield(LaneState::ready, 0);
}

void FiberContext::drain(size_t count) {
  for (; count > 0 && !stores_.empty(); --count) {
    std::memcpy(stores_.front().target, stores_.front().bytes.data(), stores_.front().size);
    stores_.pop_front();
  }
}

void FiberContext::block_barrier(int site) {
  drain(stores_.size());
  fibers_.impl_->yield(LaneState::at_block, site);
}

void FiberContext::warp_barrier(int site) {
  drain(stores_.size());
  fibers_.impl_->arrive_at_warp(thread(), site);
}

void FiberContext::note_site(int site) {
  if (state_.options.visited != nullptr) state_.options.visited->insert(site);
}

std::array<std::array<unsigned char, 32>, 32> FiberContext::exchange_bytes(
    const std::array<unsigned char, 32>& mine) {
  FiberBlock::Impl& impl = *fibers_.impl_;
  auto& warp = impl.warps[static_cast<size_t>(thread() / 32)];
  const auto self = static_cast<size_t>(lane());
  const auto parity = static_cast<size_t>(warp.parity_of_lane[self]);
  warp.parity_of_lane[self] ^= 1;
  warp.slots[parity][self] = mine;
  impl.arrive_at_warp(thread(), 0);
  return warp.slots[parity];
}

void FiberContext::land(const Copy& copy) {
  if (copy.source == nullptr) {
    std::memset(copy.target, 0, 16);
  } else {
    std::memcpy(copy.target, copy.source, 16);
  }
}

void FiberContext::start_copy(void* target, const void* source) {
  step();
  std::memset(target, 0xFF, 16);
  copies_.push_back({target, source, group_});
}

void FiberContext::commit_copies() {
  ++group_;
}

void FiberContext::wait_copies(int left) {
  step();
  std::erase_if(copies_, [&](const Copy& copy) {
    if (copy.group >= group_ - left) return false;
    land(copy);
    return true;
  });
}

}  // namespace hsm::emulation
