#include "text/prefetch.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <thread>

#include "base/error.h"

namespace hsm {
namespace {

// Windows that hold their own place; epoch e has 3 + e of them.
class Numbered : public BatchSource {
 public:
  explicit Numbered(int64_t fail_at = -1) : fail_at_(fail_at) {}
  [[nodiscard]] int64_t windows(int64_t epoch) const override { return 3 + epoch; }
  [[nodiscard]] int64_t targets(int64_t epoch) const override { return windows(epoch); }
  [[nodiscard]] Batch window(int64_t epoch, int64_t window) const override {
    if (made_++ == fail_at_) throw DataError("disk gone");
    Batch batch;
    batch.steps = 1;
    batch.streams = 2;
    batch.inputs = {static_cast<int32_t>(epoch), static_cast<int32_t>(window)};
    return batch;
  }
  [[nodiscard]] int64_t made() const { return made_; }

 private:
  int64_t fail_at_;
  mutable std::atomic<int64_t> made_ = 0;
};

TEST(PrefetchedBatches, ComeInOrderFromAnyPlaceThroughTheEpochs) {
  const Numbered source;
  for (const int64_t ahead : {1, 2, 7}) {
    int64_t epoch = 0;
    int64_t window = 2;
    PrefetchedBatches batches(source, epoch, window, ahead);
    for (int i = 0; i < 40; ++i) {
      const PlacedBatch placed = batches.next();
      ASSERT_EQ(placed.epoch, epoch);
      ASSERT_EQ(placed.window, window);
      ASSERT_EQ(placed.batch.inputs,
                (std::vector<int32_t>{static_cast<int32_t>(epoch), static_cast<int32_t>(window)}));
      if (++window == source.windows(epoch)) {
        ++epoch;
        window = 0;
      }
    }
  }
  PrefetchedBatches at_the_end(source, 1, 4);
  EXPECT_EQ(at_the_end.next().epoch, 2);
}

TEST(PrefetchedBatches, ReadAheadIsBoundedAndEndsWithTheObject) {
  const Numbered source;
  {
    PrefetchedBatches batches(source, 0, 0, 3);
    batches.next();
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_LE(source.made(), 1 + 3 + 1) << "one taken, three waiting, one in the making";
  PrefetchedBatches unused(source, 0, 0);
}

TEST(PrefetchedBatches, AFailureComesAfterTheWindowsBeforeIt) {
  const Numbered source(4);
  PrefetchedBatches batches(source, 0, 0, 8);
  for (int i = 0; i < 4; ++i) batches.next();
  for (int i = 0; i < 2; ++i) {
    try {
      batches.next();
      FAIL() << "expected the source's error";
    } catch (const DataError& error) {
      EXPECT_STREQ(error.what(), "disk gone");
    }
  }
}

}  // namespace
}  // namespace hsm
