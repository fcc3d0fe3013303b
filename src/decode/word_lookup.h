#pragma once
#include <cstdint>
#include <functional>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/row_batch.h"

namespace hsm {

/// How probable is a word after a row? `owner` and `tag` are the asker's.
struct WordQuestion {
  int32_t row = 0;
  int32_t word = 0;
  int32_t owner = 0;
  int64_t tag = 0;
};

/// Answers many questions for the log-probabilities of given words, in bounded memory: words of one cluster
/// after one row share its expansion.
class WordLookup {
 public:
  /// Gets each question, in any order, with the word's log-probability, double(root) + double(leaf).
  using Take = std::function<void(const WordQuestion&, double log_prob)>;

  WordLookup(Arena& arena, const Scorer& scorer, int64_t capacity);

  /// Answers now or at one of the next calls.
  void ask(const WordQuestion& question, const RowBatch& rows, Expander& expander, const Take& take);
  /// Answers what is still open.
  void flush(const RowBatch& rows, Expander& expander, const Take& take);

 private:
  struct Open {
    WordQuestion question;
    WordPlace place;
  };

  void answer(const RowBatch& rows, Expander& expander, const Take& take) const;

  const Scorer* scorer_;
  std::span<Open> open_;
  size_t count_ = 0;
};

}  // namespace hsm
