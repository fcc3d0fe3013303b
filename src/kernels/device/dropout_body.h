#pragma once
#include <cstdint>

#include "kernels/device/element.h"

namespace hsm::kernels::device {

/// Philox4x32-10 as in base/random.h, in the form that both compilers take.
struct Words {
  uint32_t word[4];
};
HSM_HOST_DEVICE Words philox_words(uint64_t major, uint64_t minor, uint32_t key0, uint32_t key1) {
  Words w{{static_cast<uint32_t>(minor), static_cast<uint32_t>(minor >> 32), static_cast<uint32_t>(major),
           static_cast<uint32_t>(major >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * w.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * w.word[2];
    w = {{static_cast<uint32_t>(b >> 32) ^ w.word[1] ^ key0, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ w.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return w;
}

/// A mask as kernels/dropout.h makes it.
struct DropoutMask {
  uint32_t key0, key1;  ///< of CounterRandom
  uint64_t major;       ///< step and layer
  uint32_t threshold;   ///< draws of 16 bits below it are dropped
  float scale;
  int64_t streams, first_stream, units;
  bool locked;
};

/// apply_dropout of kernels/dropout.h on values [times, streams, units]. An index kUnits units of a row: of
/// times · streams · ceil(units / kUnits).
template <class T>
struct DropUnits {
  static constexpr int64_t kUnits = 8;  // 16 bits each of the four words
  DropoutMask mask;
  T* values;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t groups = divide_up<int64_t>(mask.units, kUnits);
    const int64_t row = i / groups;
    const int64_t first = i % groups * kUnits;
    const auto time = static_cast<uint64_t>(mask.locked ? 0 : row / mask.streams);
    const auto stream = static_cast<uint64_t>(mask.first_stream + row % mask.streams);
    const Words words = philox_words(
        mask.major, (time << 40) | (stream << 16) | static_cast<uint64_t>(i % groups), mask.key0, mask.key1);
    for (int64_t u = 0; u < smaller(kUnits, mask.units - first); ++u) {
      const uint32_t draw = (words.word[u / 2] >> (16 * (u % 2))) & 0xFFFFU;
      T& value = values[row * mask.units + first + u];
      value = Element<T>::store(Element<T>::load(value) * (draw < mask.threshold ? 0.0F : mask.scale));
    }
  }
};

}  // namespace hsm::kernels::device
