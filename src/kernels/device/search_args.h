#pragma once
#include "kernels/device/head_forward.h"
#include "kernels/device/ranked.h"

namespace hsm::kernels::device {

/// What one search may ask for at most.
constexpr int32_t kMostKept = 1024;         ///< words of a query
constexpr int32_t kMostPairsARound = 1024;  ///< pairs of a query
constexpr int32_t kMostPairs = 4096;        ///< pairs of all queries together

/// The search for the best next words of several queries (see decode/candidate_search.h: the same exact top-k
/// over two levels). A query has consecutive rows of the batch, its hypotheses; parents are counted within
/// it.
template <class P>
struct SearchArgs {
  using S = typename P::Sum;
  HeadArgs<P> head;  ///< plan and in: hidden [rows, D]; its targets, state and outputs are not used

  int32_t queries = 0;
  int32_t rows = 0;
  int32_t kept = 0;           ///< M: words wanted of each query
  int32_t pairs_a_round = 0;  ///< E: pairs of a query expanded in one round
  int64_t leaf_stride = 0;    ///< words of the largest cluster
  int32_t end_row = -1;       ///< row of the word matrix of the end symbol, which lies in the shortlist

  View<const int32_t> first_row;     ///< [queries + 1]
  View<const int32_t> query_of_row;  ///< [rows]
  View<const double> score;          ///< [rows] of the hypotheses
  View<const int32_t> word_of_row;   ///< [V] public id of each row of the word matrix
  View<const uint32_t> forbidden;    ///< a bit a word id: never wanted
  View<const Ranked> after;          ///< [queries]: words up to this one, parents counted, are not wanted;
                                     ///< no_rank(): none is, and nothing is expanded

  View<S> root_logit;         ///< [rows, R]
  View<LogSum<S>> root_part;  ///< [rows, splits]
  View<S> root_log_sum;       ///< [rows]
  View<Ranked> row_best;      ///< [rows, M]: words of the root, best first
  View<Ranked> pair;          ///< [queries, E]: what this round expands, best bound first
  View<Ranked> last_pair;     ///< [queries]: pairs up to this one are dealt with
  View<int32_t> pair_count;   ///< [queries]
  View<int32_t> order;        ///< [queries · E]: the round's pairs (query · E + place), sorted by cluster
  View<int32_t> item_start;   ///< [queries · E + 1]: where in `order` each item of the leaves begins
  View<int32_t> item_count;   ///< [1]
  View<S> leaf_logit;         ///< [queries · E, leaf_stride]
  View<LogSum<S>> leaf_part;  ///< [queries · E]
  View<Ranked> pair_best;     ///< [queries · E, M]

  // What the host reads: 16 bytes a word, and a few more a query and a row.
  View<Ranked> best;         ///< [queries, M], best first, no_rank() where there are fewer; a first score of
                             ///< +∞: some score is not a number
  View<int32_t> more;        ///< [queries]: 1 while a pair that is not expanded might hold a better word
  View<float> end_log_prob;  ///< [rows]
  View<int64_t> expanded;    ///< [queries]: pairs expanded since whoever owns it has set it to 0
};

}  // namespace hsm::kernels::device
