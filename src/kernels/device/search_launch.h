#pragma once
#include "kernels/device/launch.h"
#include "kernels/device/search_args.h"

namespace hsm::kernels::device {

/// What one search may ask for at most.
constexpr int32_t kMostKept = 1024;         ///< words of a query
constexpr int32_t kMostPairsARound = 1024;  ///< pairs of a query
constexpr int32_t kMostPairs = 4096;        ///< pairs of all queries together

/// The tiles that SearchArgs::head.plan is made with, before cut_root_for_search. P: Bf16 or Fma<float>.
template <class P>
HeadTiles search_tiles();

/// Root scores of all rows, and each query's best words among shortlist and clusters of one word: three
/// launches. Fills best, more and end_log_prob. UsageError beyond the limits above.
template <class P>
void launch_search_start(const SearchArgs<P>& args, Stream stream);

/// Expands each query's best pairs that are left, while it has `more`, and merges what they hold into best:
/// five launches. When no query has more, it changes nothing.
template <class P>
void launch_search_round(const SearchArgs<P>& args, Stream stream);

}  // namespace hsm::kernels::device
