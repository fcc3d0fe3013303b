#pragma once
#include <cstdint>
#include <vector>

#include "text/batches.h"

namespace hsm {

/// How a training step is cut to need less memory, with the same gradient within rounding. Masks of dropout
/// are keyed by stream and time, so they stay as they are.
struct StepPieces {
  int64_t micro_batches = 1;  ///< a window is worked through in so many groups of streams, if it has as many
  int64_t head_chunk = 0;     ///< tokens that the head works on at a time; 0: all
};

/// Streams that are worked on together.
struct StreamGroup {
  int64_t first = 0;
  int64_t count = 0;
};

/// `streams` ≥ 1 in min(pieces, streams) groups whose sizes differ by at most 1, larger ones first.
std::vector<StreamGroup> group_streams(int64_t streams, int64_t pieces);

/// The part of a window that these streams are.
Batch part_of(const Batch& batch, StreamGroup group);

}  // namespace hsm
