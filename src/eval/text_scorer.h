#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "eval/token_score.h"

namespace hsm {

/// Where a stream of text stands: the recurrent state after all words but the last, and the last word.
struct StreamState {
  std::vector<float> state;
  int32_t last = 0;
};

/// Scores each word of a text given the words before it, on the CPU (TokenScorer) or a device.
class TextScorer {
 public:
  virtual ~TextScorer() = default;

  /// The start of a text: zero state.
  [[nodiscard]] virtual StreamState start() const = 0;

  /// Words that follow each other, public ids; `state` is carried from call to call. scores: one a word.
  virtual void score_stream(std::span<const int32_t> words, StreamState& state,
                            std::span<TokenScore> scores) = 0;

  /// Whole sentences, one behind the other in `words`, each from the start; lengths[i] counts the words of
  /// sentence i, its `</s>` too.
  virtual void score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                               std::span<TokenScore> scores) = 0;
};

}  // namespace hsm
