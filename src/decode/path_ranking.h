#pragma once
#include <cstddef>
#include <cstdint>
#include <limits>
#include <span>

namespace hsm {

/// A path through a confusion network, made longer by an alternative.
struct PathCandidate {
  double score = 0;     ///< that paths are ranked by
  double channel = 0;   ///< sum of channel scores
  double log_prob = 0;  ///< of its words
  uint64_t words = 0;   ///< hash of its words
  int32_t parent = 0;   ///< rank of the path that it makes longer
  int32_t alternative = 0;
};

/// The one total order: higher score, then earlier parent, then earlier alternative.
inline bool better(const PathCandidate& a, const PathCandidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.parent != b.parent) return a.parent < b.parent;
  return a.alternative < b.alternative;
}

/// Hash of a path's words and one more. Two different texts share one of these 64-bit hashes with a
/// probability of 2^-64.
uint64_t hash_with(uint64_t words, int32_t word);

/// The best of the paths offered, of each text only the best path; the result doesn't depend on the order of
/// the offers. Borrowed memory holds twice as many as are kept, and is put in order whenever it is full.
class DistinctPaths {
 public:
  DistinctPaths() = default;
  /// Keeps memory.size() / 2, at least 1.
  explicit DistinctPaths(std::span<PathCandidate> memory) : memory_(memory) {}

  /// Paths below this score can't be among the best any more.
  [[nodiscard]] double floor() const { return floor_; }
  /// Probability 0 is never taken.
  void offer(const PathCandidate& candidate);
  /// Ends the offers: best first.
  std::span<const PathCandidate> sort();

 private:
  void put_in_order();

  std::span<PathCandidate> memory_;
  size_t count_ = 0;
  double floor_ = -std::numeric_limits<double>::infinity();
};

}  // namespace hsm
