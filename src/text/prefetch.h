#pragma once
#include <cstdint>
#include <memory>

#include "text/batch_source.h"

namespace hsm {

/// A window and its place in training.
struct PlacedBatch {
  int64_t epoch = 0;
  int64_t window = 0;
  Batch batch;
};

/// Windows one after the other, epoch after epoch without end, prepared on a thread of its own that keeps a
/// few ahead.
class PrefetchedBatches {
 public:
  /// Starts with `window` of `epoch`; one past the last of an epoch is the first of the next. `source` must
  /// outlive the object. At most `ahead` ≥ 1 windows wait, and one is in the making.
  PrefetchedBatches(const BatchSource& source, int64_t epoch, int64_t window, int64_t ahead = 4);
  ~PrefetchedBatches();
  PrefetchedBatches(const PrefetchedBatches&) = delete;
  PrefetchedBatches& operator=(const PrefetchedBatches&) = delete;

  /// The next window. What the source threw while it made that window is thrown here, and again after that.
  PlacedBatch next();

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hsm
