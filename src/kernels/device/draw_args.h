#pragma once
#include "kernels/device/search_args.h"

namespace hsm::kernels::device {

/// A word to be drawn after a row, as decode/word_draw.h has it: which random numbers, and what is allowed.
struct DrawRequest {
  uint64_t sequence;
  uint64_t step;  ///< below 2^40
  int32_t row;
  int32_t end_allowed;  ///< 1 or 0
};

constexpr int32_t kUndecided = -2;  ///< the draw needs another round
constexpr int32_t kNothing = -1;    ///< no allowed word has a probability above 0

struct DrawnWord {
  double log_prob;  ///< the model's own; not a number when its scores are not
  int32_t word;     ///< or one of the two above
  int32_t proposals;
};

/// Draws by proposal and acceptance, as decode/ancestral_sampler.h describes. Of `search` the root's logits
/// and what an expansion works in are used, with a query a draw, and one pair: pairs_a_round 1, first_row
/// [draws] the draws' rows.
template <class P>
struct DrawArgs {
  using S = typename P::Sum;
  SearchArgs<P> search;
  double power = 1;   ///< 1 / temperature
  uint32_t key0 = 0;  ///< of CounterRandom
  uint32_t key1 = 0;
  bool starts = false;              ///< the first round: weights and results are made, too
  View<const DrawRequest> request;  ///< [draws]
  View<DrawnWord> drawn;            ///< [draws]
  View<S> log_weight;               ///< [draws, R]: what columns are proposed by
};

}  // namespace hsm::kernels::device
