#pragma once
#include <cstdint>
#include <functional>

namespace hsm {

/// How probable is a word after a row of the last step? `owner` and `tag` are the asker's.
struct WordQuestion {
  int32_t row = 0;
  int32_t word = 0;
  int32_t owner = 0;
  int64_t tag = 0;
};

/// Answers many questions for the log-probabilities of given words, in bounded memory.
class WordLookup {
 public:
  /// Gets each question, in any order, with the word's log-probability, double(root) + double(leaf).
  using Take = std::function<void(const WordQuestion&, double log_prob)>;

  virtual ~WordLookup() = default;
  /// Answers now or at one of the next calls.
  virtual void ask(const WordQuestion& question, const Take& take) = 0;
  /// Answers what is still open.
  virtual void flush(const Take& take) = 0;
};

}  // namespace hsm
