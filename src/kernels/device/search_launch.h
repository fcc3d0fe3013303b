#pragma once
#include "kernels/device/launch.h"
#include "kernels/device/search_args.h"

namespace hsm::kernels::device {

/// The tiles that SearchArgs::head.plan is made with, before cut_root_for_search. P: Bf16 or Fma<float>.
template <class P>
HeadTiles search_tiles();

/// Logits at the root of all rows: one launch. Reads args.head and args.rows, fills root_logit and root_part.
template <class P>
void launch_root_logits(const SearchArgs<P>& args, Stream stream);

/// After root logits: each query's best words among shortlist and clusters of one word: two launches. Fills
/// best, more and end_log_prob. UsageError beyond the limits above.
template <class P>
void launch_search_start(const SearchArgs<P>& args, Stream stream);

/// Sorts the pairs of `pair`, of which each query has `pair_count`, and computes their leaves: two launches.
template <class P>
void launch_expansion(const SearchArgs<P>& args, Stream stream);

/// Expands each query's best pairs that are left, while it has `more`, and merges what they hold into best:
/// five launches. When no query has more, it changes nothing.
template <class P>
void launch_search_round(const SearchArgs<P>& args, Stream stream);

}  // namespace hsm::kernels::device
