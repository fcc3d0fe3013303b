#pragma once
#include <cstdint>
#include <memory>
#include <type_traits>
#include <utility>

namespace hsm {

/// A fixed set of threads for data-parallel loops. The calling thread works, too, so a pool of one thread
/// starts none. One loop runs at a time; a loop inside a loop is not allowed.
class ThreadPool {
 public:
  /// `threads` ≥ 1 counts the calling thread.
  explicit ThreadPool(int threads);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  [[nodiscard]] int threads() const noexcept;

  /// Calls body(item, worker) once for each item in [0, count), worker in [0, threads()), and returns when
  /// all are done. Items are handed out in order, so the largest should come first. Which worker gets an
  /// item varies: results must depend on the item alone. The first exception is rethrown here.
  template <class Body>
  void run(int64_t count, Body&& body) {
    using Plain = std::remove_reference_t<Body>;
    run_items(count, const_cast<void*>(static_cast<const void*>(&body)),
              [](void* context, int64_t item, int worker) { (*static_cast<Plain*>(context))(item, worker); });
  }

 private:
  using Call = void (*)(void* context, int64_t item, int worker);
  void run_items(int64_t count, void* context, Call call);

  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hsm
