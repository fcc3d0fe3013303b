#pragma once
#include <cstdint>
#include <span>

#include "decode/candidates.h"
#include "decode/word_filter.h"
#include "gpu/engine/decode_rows.h"

namespace hsm {

/// The exact search for next words by the device's kernels, some queries at a time and a page of words after
/// the other: so that any number of words is found, and words that one query excludes are passed over here.
/// A page takes one copy over, one back, and more only where two rounds of expansions were too few.
class DecodeSearch : public WordSearch {
 public:
  /// Rows and filter outlive the object.
  DecodeSearch(Arena& host, DeviceArena& device, DecodeRows& rows, const WordFilter& filter,
               int64_t max_queries, int64_t max_parents, int64_t most_words);

  void run(std::span<CandidateQuery> queries) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override { return possible_; }

 private:
  using Ranked = kernels::device::Ranked;

  struct Sizes {
    int32_t queries;  ///< at a time
    int32_t pairs_a_round;
    int32_t kept;  ///< words of a page
    int64_t rows;
  };
  /// What goes over before a page.
  struct Question {
    explicit Question(const Sizes& sizes);
    BlockLayout layout;
    BlockLayout::Place<int32_t> first_row;
    BlockLayout::Place<int32_t> query_of_row;
    BlockLayout::Place<double> score;
    BlockLayout::Place<Ranked> after;
  };
  /// What comes back.
  struct Answer {
    explicit Answer(const Sizes& sizes);
    BlockLayout layout;
    BlockLayout::Place<Ranked> best;
    BlockLayout::Place<int32_t> more;
    BlockLayout::Place<float> end_log_prob;
    BlockLayout::Place<int64_t> expanded;
  };

  static Sizes sizes(const DecodeRows& rows, int64_t max_queries, int64_t max_parents, int64_t most_words);
  void run_together(std::span<CandidateQuery> queries);
  void ask(std::span<const CandidateQuery> queries);
  void search_page(int32_t queries);
  bool take_page(std::span<CandidateQuery> queries);
  void take_ends(std::span<CandidateQuery> queries) const;

  DecodeRows* rows_;
  const WordFilter* filter_;
  int32_t end_of_sentence_;
  Sizes sizes_;
  Question question_;
  Answer answer_;
  MirroredBlock question_memory_;
  MirroredBlock answer_memory_;
  std::span<int64_t> expanded_;  ///< counts of queries that have been taken in
  kernels::device::SearchPass pass_;
  int64_t ragged_clusters_ = 0;
  int64_t possible_ = 0;
};

}  // namespace hsm
