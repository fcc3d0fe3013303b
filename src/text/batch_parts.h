#pragma once
#include <array>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <span>
#include <utility>

#include "base/random.h"
#include "text/batch_source.h"
#include "text/vocabulary.h"

// What the ways of cutting a corpus into batches share.
namespace hsm {

/// UsageError for an option out of range.
void check_options(const BatchOptions& options);

/// Window lengths drawn from bptt · (1 ± jitter).
class WindowLengths {
 public:
  explicit WindowLengths(const BatchOptions& options);
  [[nodiscard]] bool fixed() const noexcept { return shortest_ == longest_; }
  [[nodiscard]] int64_t draw(int64_t epoch, int64_t index) const;

 private:
  CounterRandom random_;
  int64_t shortest_;
  int64_t longest_;
};

/// Turns occurrences of words seen once in training into `<unk>`.
class UnknownSingletons {
 public:
  UnknownSingletons(const Vocabulary& vocabulary, const BatchOptions& options);
  /// `tokens` stand at `position` and after it in the corpus.
  void apply(int64_t epoch, int64_t position, std::span<int32_t> tokens) const;

 private:
  CounterRandom random_;
  int32_t first_ = 0;  // ids of words seen once: [first, last)
  int32_t last_ = 0;
  int32_t unknown_;
  int32_t end_of_sentence_;
};

/// A random order of 0 … size − 1 in constant memory: a Feistel network on the smallest square power of two
/// that holds them, walked until it lands within.
class RandomOrder {
 public:
  RandomOrder(int64_t size, uint64_t key);
  [[nodiscard]] int64_t operator()(int64_t index) const;

 private:
  [[nodiscard]] uint64_t shuffle_bits(uint64_t value) const;

  uint64_t size_;
  std::array<uint32_t, 2> key_;
  int half_bits_ = 1;
};

/// Plans of the two epochs last asked for: the one that is trained and the one that is read ahead.
template <class Plan>
class EpochPlans {
 public:
  explicit EpochPlans(std::function<Plan(int64_t)> make) : make_(std::move(make)) {}

  std::shared_ptr<const Plan> get(int64_t epoch) {
    const std::lock_guard lock(mutex_);
    if (slots_[0].plan && slots_[0].epoch == epoch) return slots_[0].plan;
    std::swap(slots_[0], slots_[1]);
    if (!slots_[0].plan || slots_[0].epoch != epoch)
      slots_[0] = {epoch, std::make_shared<const Plan>(make_(epoch))};
    return slots_[0].plan;
  }

 private:
  struct Slot {
    int64_t epoch = 0;
    std::shared_ptr<const Plan> plan;
  };
  std::function<Plan(int64_t)> make_;
  std::mutex mutex_;
  Slot slots_[2];  // the first was used last
};

}  // namespace hsm
