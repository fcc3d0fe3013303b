#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <random>
#include <vector>

namespace hsm::test {

/// Runs a body for an index on the host, the indices in an order drawn anew each time: a body whose result
/// depended on the order would give itself away.
class HostLaunch {
 public:
  explicit HostLaunch(uint32_t seed) : random_(seed) {}

  template <class Body>
  void operator()(int64_t count, const Body& body) {
    std::vector<int64_t> order(static_cast<size_t>(count));
    std::iota(order.begin(), order.end(), int64_t{0});
    std::shuffle(order.begin(), order.end(), random_);
    for (const int64_t i : order) body(i);
  }

 private:
  std::mt19937 random_;
};

}  // namespace hsm::test
