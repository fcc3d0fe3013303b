#pragma once
#include <cmath>
#include <vector>

namespace hsm::test {

/// The Euclidean norm.
inline double norm(const std::vector<double>& values) {
  double sum = 0;
  for (const double value : values) sum += value * value;
  return std::sqrt(sum);
}

}  // namespace hsm::test
