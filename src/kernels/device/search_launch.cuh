#pragma once
#include <string>

#include "kernels/device/head_shapes.h"
#include "kernels/device/launch.cuh"
#include "kernels/device/search.h"
#include "kernels/device/search_launch.h"

namespace hsm::kernels::device {

template <class P>
using SearchShape = std::conditional_t<sizeof(typename P::T) == 2, LeafShape16<0>, LeafShape32<0>>;

template <class P>
HeadTiles search_tiles() {
  return tiles_of<SearchShape<P>, SearchShape<P>, typename HeadShapes<P, HeadVariant::streamed>::Backward>();
}

inline void check_limit(const char* what, int64_t asked, int64_t most) {
  if (asked <= most) return;
  throw UsageError(std::string("search on the GPU: ") + std::to_string(asked) + " " + what + ", at most " +
                   std::to_string(most) + " are possible");
}

/// Calls f with a list length, as an integral constant, that holds what is kept.
template <class F>
void with_chunk(int32_t kept, F f) {
  if (kept <= 256) {
    f(std::integral_constant<int, 256>());
  } else {
    f(std::integral_constant<int, kMostKept>());
  }
}

template <class P>
void launch_root_logits(const SearchArgs<P>& args, Stream stream) {
  launch<RootLogits<P, SearchShape<P>>>("root scores", args, stream);
}

template <class P>
void launch_search_start(const SearchArgs<P>& args, Stream stream) {
  check_limit("words of a query", args.kept, kMostKept);
  check_limit("pairs of a query in a round", args.pairs_a_round, kMostPairsARound);
  check_limit("pairs in a round", int64_t{args.queries} * args.pairs_a_round, kMostPairs);
  with_chunk(args.kept, [&](auto chunk) {
    launch<RowBest<P, decltype(chunk)::value>>("best words of the root", args, stream);
    launch<MergeBest<P, true, decltype(chunk)::value>>("merge of the root's words", args, stream);
  });
}

template <class P>
void launch_expansion(const SearchArgs<P>& args, Stream stream) {
  launch<SortPairs<P, kMostPairs, SearchShape<P>::BM>>("sort of the pairs", args, stream);
  launch<LeafLogits<P, SearchShape<P>>>("leaf scores", args, stream);
}

template <class P>
void launch_search_round(const SearchArgs<P>& args, Stream stream) {
  launch<GatherPairs<P, kMostPairsARound>>("pairs to expand", args, stream);
  launch_expansion(args, stream);
  with_chunk(args.kept, [&](auto chunk) {
    launch<PairBest<P, decltype(chunk)::value>>("best words of the clusters", args, stream);
    launch<MergeBest<P, false, decltype(chunk)::value>>("merge of the clusters' words", args, stream);
  });
}

}  // namespace hsm::kernels::device

/// Compiles the search for a precision.
#define HSM_INSTANTIATE_SEARCH(P)                                     \
  template HeadTiles search_tiles<P>();                               \
  template void launch_root_logits<P>(const SearchArgs<P>&, Stream);  \
  template void launch_search_start<P>(const SearchArgs<P>&, Stream); \
  template void launch_expansion<P>(const SearchArgs<P>&, Stream);    \
  template void launch_search_round<P>(const SearchArgs<P>&, Stream);
