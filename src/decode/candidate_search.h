#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/candidates.h"
#include "decode/expander.h"
#include "decode/row_batch.h"
#include "decode/word_filter.h"

namespace hsm {

/// Exact top-k over the two levels without computing the whole vocabulary. For a hypothesis of score s, no
/// word of cluster c scores above the bound s + log P(c). Shortlist words are candidates at once; then pairs
/// (hypothesis, cluster) are expanded best bound first, in growing rounds, while their bound reaches the
/// worst candidate kept. Scores are summed as s + (root + leaf) in double, in which rounding keeps the bound.
/// The result is that of ranking every word of every hypothesis, whatever the expander's capacity.
class CandidateSearch : public WordSearch {
 public:
  /// For at most `max_queries` at a time of at most `max_parents` hypotheses each. Rows, expander and filter
  /// outlive the object.
  CandidateSearch(Arena& arena, const RowBatch& rows, Expander& expander, const WordFilter& filter,
                  int64_t max_queries, int64_t max_parents);

  void run(std::span<CandidateQuery> queries) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override { return possible_; }

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
  void start(CandidateQuery& query, Progress& progress);
  void gather(const CandidateQuery& query, size_t index);
  void expand_round(std::span<CandidateQuery> queries);
  void offer_leaves(CandidateQuery& query, const Expansion& item, std::span<const float> leaves) const;
  void offer(CandidateQuery& query, const Candidate& candidate) const;

  const RowBatch* rows_;
  Expander* expander_;
  const WordFilter* filter_;
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
