#pragma once
#include <cstdint>
#include <limits>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/row_batch.h"
#include "decode/word_filter.h"

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

/// Exact top-k over the two levels without computing the whole vocabulary. For a hypothesis of score s, no
/// word of cluster c scores above the bound s + log P(c). Shortlist words are candidates at once; then pairs
/// (hypothesis, cluster) are expanded best bound first, in growing rounds, while their bound reaches the
/// worst candidate kept. Scores are summed as s + (root + leaf) in double, in which rounding keeps the bound.
/// The result is that of ranking every word of every hypothesis, whatever the expander's capacity.
class CandidateSearch {
 public:
  /// For at most `max_queries` at a time of at most `max_parents` hypotheses each.
  CandidateSearch(Arena& arena, const Scorer& scorer, int64_t max_queries, int64_t max_parents);

  void run(std::span<CandidateQuery> queries, const RowBatch& rows, Expander& expander,
           const WordFilter& filter);
  /// Pairs of a hypothesis and a cluster of several words seen since the beginning: what a dense search
  /// would have expanded.
  [[nodiscard]] int64_t possible_expansions() const noexcept { return possible_; }

 private:
  struct Pair {
    double bound;
    int32_t parent;
    int32_t cluster;
  };
  /// Pairs of a query come in the order of before(); those up to and including `last` are dealt with.
  struct Progress {
    Pair last;
    int64_t wanted;  ///< pairs of the next round
    int64_t found;   ///< pairs of this round
    int64_t next;    ///< first of them that is not expanded
    bool more;       ///< a pair might be left after them
  };

  static bool before(const Pair& a, const Pair& b);
  std::span<Pair> pairs_of(size_t query) const;
  void start(CandidateQuery& query, Progress& progress, const RowBatch& rows, const WordFilter& filter);
  void gather(const CandidateQuery& query, size_t index, const RowBatch& rows);
  void expand_round(std::span<CandidateQuery> queries, const RowBatch& rows, Expander& expander,
                    const WordFilter& filter);
  void offer_leaves(CandidateQuery& query, const Expansion& item, std::span<const float> leaves,
                    const RowBatch& rows, const WordFilter& filter) const;
  void offer(CandidateQuery& query, const Candidate& candidate, const WordFilter& filter) const;

  const Scorer* scorer_;
  int32_t end_;
  int64_t capacity_;  ///< pairs of a query in one round
  int64_t possible_ = 0;
  int64_t ragged_clusters_ = 0;  ///< clusters of several words
  std::span<Pair> pairs_;
  std::span<Progress> progress_;
  std::span<int32_t> single_;  ///< clusters of one word
};

}  // namespace hsm
