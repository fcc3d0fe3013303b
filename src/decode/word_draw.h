#pragma once
#include <cstdint>
#include <span>

#include "base/random.h"

namespace hsm {

inline constexpr int32_t kNoWord = -1;

/// One word to be drawn after one row.
struct WordDraw {
  int64_t row = 0;
  bool end_allowed = true;
  uint64_t sequence = 0;  ///< which random numbers: of this sequence,
  uint64_t step = 0;      ///< at this step (below 2^40)

  int32_t word = kNoWord;  ///< drawn; kNoWord when no allowed word has a probability above 0
  double log_prob = 0;     ///< the model's own, whatever the temperature
};

/// Draws words from P(w)^(1/T), rescaled over the allowed words. A draw depends on its own fields, the row
/// and the seed alone.
class WordSampler {
 public:
  virtual ~WordSampler() = default;
  virtual void run(std::span<WordDraw> draws) = 0;
  [[nodiscard]] virtual int64_t possible_expansions() const noexcept = 0;
};

/// How much of a row's probability do the words have that may be generated?
struct MassQuestion {
  int64_t row = 0;
  bool end_allowed = true;
  double mass = 1;  ///< the answer
};

class AllowedMass {
 public:
  virtual ~AllowedMass() = default;
  virtual void run(std::span<MassQuestion> questions) = 0;
};

/// Two numbers in [0, 1) of a sequence; `index` is below 2^24.
struct UniformPair {
  double first = 0;
  double second = 0;
};
inline UniformPair uniforms(const CounterRandom& random, const WordDraw& draw, uint64_t index) {
  const auto words = random.words(draw.sequence, (draw.step << 24) | index);
  const auto to_double = [](uint32_t low, uint32_t high) {
    return static_cast<double>(((uint64_t{high} << 32) | low) >> 11) * 0x1.0p-53;
  };
  return {to_double(words[0], words[1]), to_double(words[2], words[3])};
}

}  // namespace hsm
