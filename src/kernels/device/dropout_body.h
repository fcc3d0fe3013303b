#pragma once
#include <cstdint>

#include "kernels/device/philox.h"

namespace hsm::kernels::device {

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
