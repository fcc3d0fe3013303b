#pragma once
#include <cstdint>
#include <string>

#include "base/random.h"

namespace hsm {

/// Lines of a made-up language: a word is followed by one of two others, so that there is something to learn.
inline std::string made_up_text(int64_t lines, uint64_t seed) {
  constexpr uint64_t kWords = 23;
  const CounterRandom random(seed, Purpose::sampling);
  std::string text;
  for (int64_t line = 0; line < lines; ++line) {
    const auto major = static_cast<uint64_t>(line);
    uint64_t word = random.below(kWords, major, 0);
    const uint64_t length = 2 + random.below(9, major, 1);
    for (uint64_t place = 0; place < length; ++place) {
      text += (place > 0 ? " w" : "w") + std::to_string(word);
      word = (random.bits(major, 2 + place) % 4 == 0 ? word * 5 + 1 : word * 3 + 2) % kWords;
    }
    text += '\n';
  }
  return text;
}

}  // namespace hsm
