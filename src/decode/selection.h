#pragma once
#include <cstdint>
#include <span>

#include "decode/candidates.h"

namespace hsm {

/// What a step keeps of its candidates; views into them, best first.
struct Selection {
  std::span<const Candidate> live;      ///< hypotheses that go on
  std::span<const Candidate> finished;  ///< end symbols that finish a hypothesis
};

/// Ranks words and end symbols (each given best first) together: an end symbol among the best `beam`
/// finishes its hypothesis, the best `beam` words live on, so an end symbol takes no live place.
Selection select(std::span<const Candidate> words, std::span<const Candidate> ends, int64_t beam);

}  // namespace hsm
