#pragma once
#include <cstdint>
#include <vector>

#include "base/random.h"

namespace hsm::test {

/// Values in [-scale, scale), a function of the seed alone.
template <class T>
std::vector<T> random_values(int64_t count, uint64_t seed, double scale = 1.0) {
  const CounterRandom random(seed, Purpose::initialization);
  std::vector<T> values(static_cast<size_t>(count));
  for (size_t i = 0; i < values.size(); ++i) {
    values[i] = static_cast<T>((2.0 * random.uniform(0, i) - 1.0) * scale);
  }
  return values;
}

}  // namespace hsm::test
