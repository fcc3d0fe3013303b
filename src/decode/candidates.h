#pragma once
#include <cstdint>
#include <limits>
#include <span>

namespace hsm {

/// A word that could follow a hypothesis, and the log-probability of the two together.
struct Candidate {
  double score = 0;
  int32_t word = 0;
  int32_t parent = 0;  ///< rank of the hypothesis among those that were asked about
};

/// The one total order: higher score, then smaller word id, then earlier parent.
inline bool better(const Candidate& a, const Candidate& b) {
  if (a.score != b.score) return a.score > b.score;
  if (a.word != b.word) return a.word < b.word;
  return a.parent < b.parent;
}

/// The best `limit` candidates of those offered, in borrowed memory. Probability 0 is never taken.
class BestCandidates {
 public:
  BestCandidates() = default;
  /// memory.size() is the limit, at least 1.
  explicit BestCandidates(std::span<Candidate> memory) : heap_(memory) {}

  /// Below this score nothing can be taken any more; at it, ties are decided by the order.
  [[nodiscard]] double floor() const {
    return count_ < heap_.size() ? -std::numeric_limits<double>::infinity() : heap_[0].score;
  }
  void offer(const Candidate& candidate);
  /// Ends the taking: best first.
  std::span<const Candidate> sort();

 private:
  std::span<Candidate> heap_;  ///< worst on top
  size_t count_ = 0;
};

/// One question: which words best follow these hypotheses?
struct CandidateQuery {
  int64_t first_row = 0;           ///< hypothesis i has row first_row + i of the batch
  std::span<const double> scores;  ///< of the hypotheses, finite
  bool end_allowed = true;
  std::span<const int32_t> excluded;  ///< words not wanted here, ascending
  BestCandidates words;               ///< all but the end symbol
  /// The end symbol, of every hypothesis that could be among the best; needs room for one a hypothesis.
  BestCandidates ends;
};

/// The question for the memory.size() − 1 best next words after one row, the end symbol apart.
CandidateQuery query_for_row(int64_t row, std::span<Candidate> memory);
/// Its answer: words and end symbol in one order, at most memory.size() of them.
std::span<const Candidate> rank_with_end(CandidateQuery& query, std::span<Candidate> memory);

/// Answers questions for the best next words after rows of the last step.
class WordSearch {
 public:
  virtual ~WordSearch() = default;
  /// The queries' hypotheses are rows without gaps: each query's first row follows the last of the one
  /// before.
  virtual void run(std::span<CandidateQuery> queries) = 0;
  /// Pairs of a hypothesis and a cluster of several words seen since the beginning: what a dense search
  /// would have expanded.
  [[nodiscard]] virtual int64_t possible_expansions() const noexcept = 0;
};

}  // namespace hsm
