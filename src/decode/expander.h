#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/row_batch.h"

namespace hsm {

/// One cluster to be expanded for one row; `owner` and `tag` are the caller's.
struct Expansion {
  int32_t cluster = 0;
  int32_t row = 0;
  int32_t owner = 0;
  int32_t tag = 0;
};

/// Computes leaf log-probabilities of a bounded number of (row, cluster) pairs at a time, pairs of one
/// cluster in one product.
class Expander {
 public:
  Expander(Arena& arena, const Scorer& scorer, int64_t capacity);

  void clear() noexcept { count_ = 0; }
  [[nodiscard]] bool full() const noexcept { return count_ == static_cast<int64_t>(items_.size()); }
  [[nodiscard]] bool empty() const noexcept { return count_ == 0; }
  /// Not when full().
  void add(const Expansion& item) { items_[static_cast<size_t>(count_++)] = item; }
  /// Computes what was added. DataError when the model's scores are not numbers.
  void run(const RowBatch& rows);

  /// After run(), in an order of its own.
  [[nodiscard]] std::span<const Expansion> items() const { return items_.first(static_cast<size_t>(count_)); }
  [[nodiscard]] std::span<const float> leaves(int64_t item) const;
  /// Expansions since the beginning.
  [[nodiscard]] int64_t total() const noexcept { return total_; }

 private:
  const Scorer* scorer_;
  int64_t count_ = 0;
  int64_t total_ = 0;
  std::span<Expansion> items_;
  std::span<const float*> heads_;  ///< of each item
  std::span<int64_t> offsets_;     ///< of each item's leaves in scores_
  std::span<int32_t> groups_;      ///< first item of each group of one cluster
  std::span<float> scores_;
};

}  // namespace hsm
