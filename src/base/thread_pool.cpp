#include "base/thread_pool.h"

#include <atomic>
#include <condition_variable>
#include <exception>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "base/error.h"

namespace hsm {
namespace {

// A loop is often followed by the next within microseconds, so threads look a while before they sleep.
constexpr int kSpins = 2000;

void relax() {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#endif
}

}  // namespace

struct ThreadPool::State {
  struct Loop {
    void* context = nullptr;
    Call call = nullptr;
    int64_t count = 0;
  };

  std::mutex mutex;
  std::condition_variable wake;
  std::condition_variable finished;
  Loop loop;          // guarded by the mutex, as is `open`
  bool open = false;  // whether a thread that comes now may still join the loop
  std::atomic<uint64_t> generation{0};
  std::atomic<int> joined{0};  // threads at work on the loop, the caller not counted
  std::atomic<bool> stop{false};
  std::atomic<int64_t> next{0};
  std::mutex error_mutex;
  std::exception_ptr error;
  std::vector<std::thread> threads;

  void work(const Loop& mine, int worker) {
    try {
      for (int64_t item = next.fetch_add(1); item < mine.count; item = next.fetch_add(1)) {
        mine.call(mine.context, item, worker);
      }
    } catch (...) {
      next.store(mine.count);
      const std::scoped_lock lock(error_mutex);
      if (!error) error = std::current_exception();
    }
  }

  void serve(int worker) {
    uint64_t seen = 0;
    while (true) {
      for (int spin = 0; spin < kSpins && generation.load() == seen && !stop.load(); ++spin) relax();
      Loop mine;
      {
        std::unique_lock lock(mutex);
        wake.wait(lock, [&] { return generation.load() != seen || stop.load(); });
        if (stop.load()) return;
        seen = generation.load();
        if (!open) continue;
        joined.fetch_add(1);
        mine = loop;
      }
      work(mine, worker);
      const std::scoped_lock lock(mutex);
      if (joined.fetch_sub(1) == 1) finished.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : state_(std::make_unique<State>()) {
  if (threads < 1) throw UsageError("threads: " + std::to_string(threads) + " given, expected at least 1");
  for (int worker = 1; worker < threads; ++worker) {
    state_->threads.emplace_back([state = state_.get(), worker] { state->serve(worker); });
  }
}

ThreadPool::~ThreadPool() {
  {
    const std::scoped_lock lock(state_->mutex);
    state_->stop.store(true);
  }
  state_->wake.notify_all();
  for (std::thread& thread : state_->threads) thread.join();
}

int ThreadPool::threads() const noexcept {
  return static_cast<int>(state_->threads.size()) + 1;
}

void ThreadPool::run_items(int64_t count, void* context, Call call) {
  if (count <= 0) return;
  State& state = *state_;
  if (state.threads.empty() || count == 1) {
    for (int64_t item = 0; item < count; ++item) call(context, item, 0);
    return;
  }
  const State::Loop loop{context, call, count};
  {
    const std::scoped_lock lock(state.mutex);
    state.loop = loop;
    state.next.store(0);
    state.open = true;
    state.generation.fetch_add(1);
  }
  state.wake.notify_all();
  state.work(loop, 0);
  {
    // A thread that the system has not let run yet is not waited for: on a busy machine that could take long.
    const std::scoped_lock lock(state.mutex);
    state.open = false;
  }
  for (int spin = 0; spin < kSpins && state.joined.load() != 0; ++spin) relax();
  {
    std::unique_lock lock(state.mutex);
    state.finished.wait(lock, [&] { return state.joined.load() == 0; });
  }
  if (state.error) std::rethrow_exception(std::exchange(state.error, nullptr));
}

}  // namespace hsm
