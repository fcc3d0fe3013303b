#pragma once
#include <algorithm>
#include <cstdint>
#include <functional>
#include <span>

#include "decode/arena.h"

namespace hsm {

/// Words that may not be generated at all, whatever the input: one bit a word.
class WordFilter {
 public:
  /// `allowed` is asked once for each word; an empty function allows every word.
  WordFilter(Arena& arena, int64_t words, const std::function<bool(int32_t)>& allowed)
      : bits_(arena.take<uint64_t>((words + 63) / 64, "word filter")) {
    std::fill(bits_.begin(), bits_.end(), 0);
    if (arena.measuring() || !allowed) return;
    for (int32_t word = 0; word < words; ++word) {
      if (allowed(word)) continue;
      bits_[static_cast<size_t>(word) / 64] |= uint64_t{1} << (word % 64);
      any_ = true;
    }
  }

  [[nodiscard]] bool allows(int32_t word) const {
    return ((bits_[static_cast<size_t>(word) / 64] >> (word % 64)) & 1) == 0;
  }
  /// Bit word % 64 of element word / 64 is set for a word that is filtered.
  [[nodiscard]] std::span<const uint64_t> bits() const noexcept { return bits_; }
  /// True when some word is filtered.
  [[nodiscard]] bool any() const noexcept { return any_; }

 private:
  std::span<uint64_t> bits_;
  bool any_ = false;
};

}  // namespace hsm
