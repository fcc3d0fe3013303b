#pragma once
#include <array>
#include <cstdint>
#include <cstring>
#include <set>
#include <stdexcept>
#include <string>
#include <vector>

#include "kernels/device/context.h"
#include "kernels/device/ptx_layout.h"

namespace hsm::emulation {

using kernels::device::View;

/// What a kernel did that a GPU would not have reported: an access out of bounds, a barrier that not all
/// lanes reach, a misaligned copy.
struct Violation : std::runtime_error {
  using std::runtime_error::runtime_error;
};

/// What tests tell an emulator, and what they get back.
struct Options {
  uint64_t seed = 1;                      ///< of the schedule
  uint64_t layout_seed = 1;               ///< of which lane holds which element of a tile product
  std::set<int> dead_sites{};             ///< barriers and bounds tests that do nothing
  bool without_barriers = false;          ///< all of them do nothing
  std::set<int>* visited = nullptr;       ///< gets the sites of all barriers and bounds tests that were met
  int64_t most_steps = int64_t{1} << 40;  ///< of a block, before it is taken to run for ever
};

/// A small fast generator (splitmix64) for schedules.
class Dice {
 public:
  explicit Dice(uint64_t seed) : state_(seed) {}
  uint64_t next() {
    uint64_t z = (state_ += 0x9E3779B97F4A7C15U);
    z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9U;
    z = (z ^ (z >> 27)) * 0x94D049BB133111EBU;
    return z ^ (z >> 31);
  }
  int below(int bound) { return static_cast<int>((next() >> 32) * static_cast<uint64_t>(bound) >> 32); }

 private:
  uint64_t state_;
};

/// Which elements of a 16 × 16 product a lane holds, shuffled by a seed: a body that knew the real layout
/// would fail.
struct FragmentLayout {
  std::array<int, 16> row;
  std::array<int, 16> column;
  std::array<int, 32> lane;  ///< logical number of a lane

  explicit FragmentLayout(uint64_t seed) {
    Dice dice(seed);
    const auto shuffle = [&dice](auto& values) {
      for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<int>(i);
      for (size_t i = values.size(); i > 1; --i)
        std::swap(values[i - 1], values[dice.below(static_cast<int>(i))]);
    };
    shuffle(row);
    shuffle(column);
    shuffle(lane);
  }
};

/// What the lanes of a block share.
struct BlockState {
  struct Allocation {
    size_t offset;
    size_t bytes;
  };

  BlockState(int block_index, int block_count, int thread_count, size_t shared_bytes,
             const Options& run_options)
      : block(block_index),
        blocks(block_count),
        threads(thread_count),
        layout(run_options.layout_seed),
        options(run_options),
        shared(shared_bytes / 16 + 1) {
    std::memset(shared.data(), 0xFF, shared.size() * sizeof(shared[0]));  // NaN, whatever the type
  }

  struct alignas(16) Piece {
    unsigned char bytes[16];
  };

  int block;
  int blocks;
  int threads;
  FragmentLayout layout;
  const Options& options;
  std::vector<Piece> shared;
};

/// Shared memory of an emulated block: checked at each access.
template <class V>
struct SharedMemory {
  using Value = V;
  V* p = nullptr;
  int count = 0;
};

/// The execution context of one emulated lane (see kernels/device/context.h). Machine supplies what depends
/// on how lanes run: step() before each access, load() and store(), barriers, exchange() between the lanes of
/// a warp, and copies.
template <class Machine>
class LaneContext {
 public:
  template <class V>
  using Shared = SharedMemory<V>;

  LaneContext(BlockState& block, int thread) : state_(block), thread_(thread) {}

  int block() const { return state_.block; }
  int blocks() const { return state_.blocks; }
  int thread() const { return thread_; }
  int threads() const { return state_.threads; }
  int lane() const { return thread_ % 32; }
  int warp() const { return thread_ / 32; }

  void sync(int site) {
    if (alive(site) && !state_.options.without_barriers) machine().block_barrier(site);
  }
  void syncwarp(int site) {
    if (alive(site) && !state_.options.without_barriers) machine().warp_barrier(site);
  }
  bool guard(int site, bool inside) { return !alive(site) || inside; }

  template <class T>
  Shared<T> shared(int count) {
    const size_t bytes = static_cast<size_t>(count) * sizeof(T);
    const size_t offset = allocated_;
    allocated_ += (bytes + 127) / 128 * 128;
    if (allocated_ > state_.shared.size() * 16) {
      throw Violation("shared memory: " + std::to_string(allocated_) + " bytes used, " +
                      std::to_string(state_.shared.size() * 16 - 16) + " asked for");
    }
    return {reinterpret_cast<T*>(state_.shared[0].bytes + offset), count};
  }

  template <class T>
  std::remove_const_t<T> get(View<T> view, int64_t i) {
    machine().step();
    return machine().load(place(view, i));
  }
  template <class T>
  void put(View<T> view, int64_t i, T value) {
    machine().step();
    machine().store(place(view, i), value);
  }
  template <class T>
  T get(Shared<T> memory, int i) {
    machine().step();
    return machine().load(place(memory, i));
  }
  template <class T>
  void put(Shared<T> memory, int i, T value) {
    machine().step();
    machine().store(place(memory, i), value);
  }

  template <class T>
  void copy16(Shared<T> to, int at, View<const T> from, int64_t i, bool inside) {
    constexpr int kCount = 16 / sizeof(T);
    T* target = place(to, at);
    place(to, at + kCount - 1);
    const T* source = nullptr;
    if (inside) {
      source = place(from, i);
      place(from, i + kCount - 1);
    }
    if (reinterpret_cast<uintptr_t>(target) % 16 != 0 || reinterpret_cast<uintptr_t>(source) % 16 != 0) {
      throw Violation("copy16: not aligned to 16 bytes");
    }
    machine().start_copy(target, source);
  }
  void commit() { machine().commit_copies(); }
  template <int Left>
  void wait() {
    machine().wait_copies(Left);
  }

  template <class T>
  T shfl_xor(T value, int mask) {
    return shfl(value, lane() ^ mask);
  }
  template <class T>
  T shfl(T value, int from) {
    return machine().exchange(value)[static_cast<size_t>(from)];
  }
  uint32_t match(int key) {
    const auto keys = machine().exchange(key);
    uint32_t mask = 0;
    for (int i = 0; i < 32; ++i) mask |= static_cast<uint32_t>(keys[i] == key) << i;
    return mask;
  }

  // ---- tile products: each lane computes its own elements from values that it read itself ----

  template <class P>
  struct FragA {
    typename P::Sum v[2][P::kDepth];
  };
  template <class P>
  struct FragB {
    typename P::Sum v[4][P::kDepth];
  };
  template <class P>
  struct Acc {
    typename P::Sum v[8];
  };
  template <class V>
  struct Rows {
    V v[2];
  };

  template <class P, class M>
  FragA<P> load_a(const M& tile, int row, int k) {
    FragA<P> a;
    check_tile<P>(tile, k);
    for (int slot = 0; slot < 2; ++slot) {
      for (int d = 0; d < P::kDepth; ++d) a.v[slot][d] = element<P>(tile, row + held_row(slot), k + d);
    }
    return a;
  }
  template <class P, class M>
  FragB<P> load_b(const M& tile, int col, int k) {
    FragB<P> b;
    check_tile<P>(tile, k);
    for (int i = 0; i < 4; ++i) {
      for (int d = 0; d < P::kDepth; ++d) b.v[i][d] = element<P>(tile, col + held_column(i), k + d);
    }
    return b;
  }
  template <class P, class M>
  FragB<P> load_bt(const M& tile, int k, int col) {
    FragB<P> b;
    check_tile<P>(tile, col);
    for (int i = 0; i < 4; ++i) {
      for (int d = 0; d < P::kDepth; ++d) b.v[i][d] = element<P>(tile, k + d, col + held_column(i));
    }
    return b;
  }
  template <class P>
  void mma(Acc<P>& acc, const FragA<P>& a, const FragB<P>& b) {
    for (int i = 0; i < 8; ++i) {
      for (int d = 0; d < P::kDepth; ++d) {
        acc.v[i] += a.v[kernels::device::ptx::acc_slot(i)][d] * b.v[(i / 4) * 2 + i % 2][d];
      }
    }
  }
  template <class P>
  void clear(Acc<P>& acc) {
    for (auto& value : acc.v) value = 0;
  }
  template <class P, class F>
  void each(Acc<P>& acc, F f) {
    for (int i = 0; i < 8; ++i) f(acc_row(i), acc_column(i), acc.v[i]);
  }
  template <class P, class V, class F>
  void each(Acc<P>& acc, Rows<V>& rows, F f) {
    for (int i = 0; i < 8; ++i) {
      f(acc_row(i), acc_column(i), acc.v[i], rows.v[kernels::device::ptx::acc_slot(i)]);
    }
  }
  template <class V, class F>
  void each_held_row(Rows<V>& rows, F f) {
    for (int slot = 0; slot < 2; ++slot) f(held_row(slot), rows.v[slot]);
  }
  template <class V, class Op>
  void row_reduce(Rows<V>& rows, Op op) {
    for (int mask = 1; mask < 4; mask *= 2) {
      for (V& value : rows.v) value = op(value, shfl(value, physical(logical() ^ mask)));
    }
  }
  template <class V, class F>
  void each_row(Rows<V>& rows, F f) {
    if (logical() % 4 == 0) each_held_row(rows, f);
  }

 private:
  Machine& machine() { return static_cast<Machine&>(*this); }

  bool alive(int site) {
    machine().note_site(site);
    return state_.options.dead_sites.count(site) == 0;
  }

  template <class T>
  static T* place(View<T> view, int64_t i) {
    if (i < 0 || i >= view.n) {
      throw Violation("global memory: element " + std::to_string(i) + " of " + std::to_string(view.n));
    }
    return view.p + i;
  }
  template <class T>
  static T* place(Shared<T> memory, int i) {
    if (i < 0 || i >= memory.count) {
      throw Violation("shared memory: element " + std::to_string(i) + " of " + std::to_string(memory.count));
    }
    return memory.p + i;
  }

  /// Tensor-core loads take whole 16-byte pieces.
  template <class P, class M>
  static void check_tile(const M& tile, int column) {
    if (column % M::kPiece != 0 || tile.at % M::kPiece != 0)
      throw Violation("tile load: not aligned to 16 bytes");
  }
  template <class P, class M>
  typename P::Sum element(const M& tile, int row, int column) {
    const auto value =
        kernels::device::Element<typename P::T>::load(get(tile.memory, tile.place(row, column)));
    if constexpr (std::is_same_v<P, kernels::device::Tf32>) {
      return kernels::device::to_tf32(value);
    } else {
      return value;
    }
  }

  int logical() const { return state_.layout.lane[static_cast<size_t>(lane())]; }
  int physical(int logical_lane) const {
    for (int i = 0; i < 32; ++i) {
      if (state_.layout.lane[static_cast<size_t>(i)] == logical_lane) return i;
    }
    return 0;
  }
  int acc_row(int i) const {
    return state_.layout.row[static_cast<size_t>(kernels::device::ptx::acc_row(logical(), i))];
  }
  int acc_column(int i) const {
    return state_.layout.column[static_cast<size_t>(kernels::device::ptx::acc_column(logical(), i))];
  }
  int held_row(int slot) const { return acc_row(2 * slot); }
  int held_column(int i) const { return acc_column((i / 2) * 4 + i % 2); }

 protected:
  BlockState& state_;

 private:
  int thread_;
  size_t allocated_ = 0;
};

}  // namespace hsm::emulation
