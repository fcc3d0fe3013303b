#include "decode/sequence_scorer.h"

#include <algorithm>
#include <numeric>

namespace hsm {

void order_longest_first(std::span<const ScoredSequence> sequences, std::span<int32_t> order) {
  const auto length = [&](int32_t sequence) {
    return sequences[static_cast<size_t>(sequence)].tokens.size();
  };
  std::iota(order.begin(), order.end(), 0);
  std::sort(order.begin(), order.end(),
            [&](int32_t a, int32_t b) { return length(a) != length(b) ? length(a) > length(b) : a < b; });
}

}  // namespace hsm
