#include "decode/path_ranking.h"

#include <algorithm>

namespace hsm {

uint64_t hash_with(uint64_t words, int32_t word) {
  uint64_t hash = words * 0x9E3779B97F4A7C15U + static_cast<uint32_t>(word) + 1;
  hash = (hash ^ (hash >> 30)) * 0xBF58476D1CE4E5B9U;
  hash = (hash ^ (hash >> 27)) * 0x94D049BB133111EBU;
  return hash ^ (hash >> 31);
}

void DistinctPaths::offer(const PathCandidate& candidate) {
  constexpr double kImpossible = -std::numeric_limits<double>::infinity();
  if (!(candidate.score > kImpossible && candidate.log_prob > kImpossible)) return;
  if (candidate.score < floor_) return;
  if (count_ == memory_.size()) put_in_order();
  if (candidate.score < floor_) return;
  memory_[count_++] = candidate;
}

std::span<const PathCandidate> DistinctPaths::sort() {
  put_in_order();
  return memory_.first(count_);
}

void DistinctPaths::put_in_order() {
  const auto offered = memory_.first(count_);
  std::sort(offered.begin(), offered.end(), [](const PathCandidate& a, const PathCandidate& b) {
    return a.words != b.words ? a.words < b.words : better(a, b);
  });
  const auto end =
      std::unique(offered.begin(), offered.end(),
                  [](const PathCandidate& a, const PathCandidate& b) { return a.words == b.words; });
  std::sort(offered.begin(), end, better);
  const size_t kept = memory_.size() / 2;
  count_ = std::min(static_cast<size_t>(end - offered.begin()), kept);
  if (count_ == kept) floor_ = memory_[kept - 1].score;
}

}  // namespace hsm
