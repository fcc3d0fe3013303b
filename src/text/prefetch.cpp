#include "text/prefetch.h"

#include <algorithm>
#include <condition_variable>
#include <deque>
#include <exception>
#include <mutex>
#include <thread>
#include <utility>

namespace hsm {

struct PrefetchedBatches::State {
  State(const BatchSource& batches, int64_t first_epoch, int64_t first_window, int64_t most)
      : source(batches),
        epoch(first_epoch),
        window(first_window),
        ahead(static_cast<size_t>(std::max<int64_t>(1, most))) {}

  PlacedBatch make_next() {
    while (window >= source.windows(epoch)) {
      ++epoch;
      window = 0;
    }
    PlacedBatch placed{epoch, window, source.window(epoch, window)};
    ++window;
    return placed;
  }

  void work() {
    try {
      while (true) {
        PlacedBatch placed = make_next();
        std::unique_lock lock(mutex);
        changed.wait(lock, [&] { return stop || ready.size() < ahead; });
        if (stop) return;
        ready.push_back(std::move(placed));
        changed.notify_all();
      }
    } catch (...) {
      const std::lock_guard lock(mutex);
      failure = std::current_exception();
      changed.notify_all();
    }
  }

  const BatchSource& source;
  // The worker's own.
  int64_t epoch;
  int64_t window;

  const size_t ahead;
  std::mutex mutex;
  std::condition_variable changed;
  std::deque<PlacedBatch> ready;
  std::exception_ptr failure;  // what ended the worker, thrown after all that is ready
  bool stop = false;
  std::thread worker;
};

PrefetchedBatches::PrefetchedBatches(const BatchSource& source, int64_t epoch, int64_t window, int64_t ahead)
    : state_(std::make_unique<State>(source, epoch, window, ahead)) {
  state_->worker = std::thread([state = state_.get()] { state->work(); });
}

PrefetchedBatches::~PrefetchedBatches() {
  {
    const std::lock_guard lock(state_->mutex);
    state_->stop = true;
    state_->changed.notify_all();
  }
  state_->worker.join();
}

PlacedBatch PrefetchedBatches::next() {
  State& state = *state_;
  std::unique_lock lock(state.mutex);
  state.changed.wait(lock, [&] { return !state.ready.empty() || state.failure; });
  if (state.ready.empty()) std::rethrow_exception(state.failure);
  PlacedBatch placed = std::move(state.ready.front());
  state.ready.pop_front();
  state.changed.notify_all();
  return placed;
}

}  // namespace hsm
