#pragma once

namespace hsm {

/// Natural log-probability of one word in the two parts that the head computes it from.
struct TokenScore {
  float root = 0;  ///< of the shortlist word, or of the word's cluster
  float leaf = 0;  ///< of the word within its cluster; 0 for a shortlist word

  [[nodiscard]] double log_prob() const noexcept {
    return static_cast<double>(root) + static_cast<double>(leaf);
  }
};

}  // namespace hsm
