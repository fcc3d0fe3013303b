#pragma once
#include <cstdint>
#include <vector>

namespace hsm {

inline constexpr int32_t kNoTarget = -1;

/// One window of training data: `steps` × `streams` tokens, time-major (index = step · streams + stream).
/// Token ids are public ids. A target of kNoTarget is padding: it has no loss.
struct Batch {
  int64_t steps = 0;
  int64_t streams = 0;
  std::vector<int32_t> inputs;
  std::vector<int32_t> targets;
  int64_t target_count = 0;  ///< targets that aren't padding
  bool starts = false;       ///< recurrent states are zero before this window, else carried over
};

}  // namespace hsm
