#pragma once
#include <cstdint>
#include <span>

#include "decode/candidates.h"
#include "decode/prompt.h"

namespace hsm {

/// A complete output; views are good during the call that hands it over.
struct Hypothesis {
  double log_prob = 0;                      ///< natural, the sum of its tokens'
  double score = 0;                         ///< divided by the length penalty
  bool finished = false;                    ///< ends with the end symbol; else cut by the length limit
  std::span<const int32_t> tokens;          ///< the end symbol included when finished
  std::span<const double> token_log_probs;  ///< one a token, or empty when they were not asked for
};

/// A path through a confusion network; the view is good during the call that hands it over.
struct NetworkPath {
  double score = 0;                  ///< what paths are ranked by
  double channel = 0;                ///< sum of the channel scores
  double log_prob = 0;               ///< of its words and the end symbol
  int64_t words = 0;                 ///< without the end symbol
  int64_t unknown = 0;               ///< of them, scored as <unk>
  std::span<const int32_t> choices;  ///< the alternative taken at each position, from 0
};

/// Where results go: one call an input, in the order of the input.
class ResultSink {
 public:
  virtual ~ResultSink() = default;
  /// Before the first of an input's hypotheses or paths, and how many there are: none when every continuation
  /// has probability 0.
  virtual void begin(const Prompt& prompt, int64_t hypotheses) = 0;
  virtual void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) = 0;
  /// In place of hypotheses where the input is a confusion network.
  virtual void path(const Prompt& prompt, const NetworkPath& path) = 0;
  virtual void end(const Prompt& prompt) = 0;
  /// The whole result of a question for next words, best first.
  virtual void next_words(const Prompt& prompt, std::span<const Candidate> words) = 0;
  /// The answer to a line that is malformed, as prompt.error says.
  virtual void bad_line(const Prompt& prompt) = 0;
};

}  // namespace hsm
