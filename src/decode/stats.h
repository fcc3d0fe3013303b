#pragma once
#include <cstdint>

namespace hsm {

/// What a decoder has done since it was made.
struct DecodeStats {
  int64_t inputs = 0;
  int64_t steps = 0;
  int64_t rows = 0;                 ///< fed in all steps: prompt tokens and hypotheses
  int64_t tokens = 0;               ///< of the outputs, end symbols included
  int64_t expansions = 0;           ///< clusters computed, for a hypothesis each
  int64_t possible_expansions = 0;  ///< had every cluster been computed for every hypothesis
  int64_t peak_nodes = 0;           ///< most words of hypotheses that one input held at once
};

}  // namespace hsm
