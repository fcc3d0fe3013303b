#pragma once
#include <cstdint>

namespace hsm {

/// Lengths count generated symbols, the end symbol too; prompt and start symbol don't count.
struct LengthOptions {
  int64_t min_length = 0;    ///< words before the end symbol may follow
  int64_t max_length = 100;  ///< symbols after which a hypothesis is cut, unfinished
  double length_penalty = 0;
};

struct BeamOptions {
  int64_t beam = 8;
  int64_t nbest = 1;  ///< at most the beam
  LengthOptions length;
  bool token_scores = false;  ///< results carry a log-probability for each token
};

struct SamplingOptions {
  int64_t samples = 1;  ///< for each input, independent of each other
  double temperature = 1;
  int64_t top_k = 0;  ///< draw among the k best words; 0: all
  double top_p = 1;   ///< draw among the fewest best words that have this much of the probability; 1: all
  uint64_t seed = 1;
  LengthOptions length;
};

/// Paths through a confusion network: score = channel scores + lm_weight · log P + word_bonus · words
/// − oov_penalty · words that are not in the vocabulary.
struct NetworkOptions {
  int64_t beam = 8;
  int64_t nbest = 1;  ///< at most the beam
  double lm_weight = 1;
  double word_bonus = 0;
  double oov_penalty = 0;
  int64_t max_positions = 1000;  ///< of an input
};

struct NextWordOptions {
  int64_t count = 10;
  bool exclude_seen = false;  ///< not the words of the prompt
};

}  // namespace hsm
