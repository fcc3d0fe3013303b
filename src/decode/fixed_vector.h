#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>

#include "decode/arena.h"

namespace hsm {

/// A vector of bounded size in an arena.
template <class T>
class FixedVector {
 public:
  FixedVector(Arena& arena, int64_t capacity, std::string_view part)
      : memory_(arena.take<T>(capacity, part)) {}

  void clear() noexcept { count_ = 0; }
  /// At most `capacity` values.
  void push_back(const T& value) { memory_[count_++] = value; }
  [[nodiscard]] T& back() { return memory_[count_ - 1]; }
  [[nodiscard]] size_t size() const noexcept { return count_; }
  [[nodiscard]] std::span<T> all() const { return memory_.first(count_); }

 private:
  std::span<T> memory_;
  size_t count_ = 0;
};

}  // namespace hsm
