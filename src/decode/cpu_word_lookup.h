#pragma once
#include <cstdint>
#include <span>

#include "decode/arena.h"
#include "decode/expander.h"
#include "decode/row_batch.h"
#include "decode/word_lookup.h"

namespace hsm {

/// Words of one cluster after one row share its expansion.
class CpuWordLookup : public WordLookup {
 public:
  /// Rows and expander outlive the object.
  CpuWordLookup(Arena& arena, const RowBatch& rows, Expander& expander, int64_t capacity);

  void ask(const WordQuestion& question, const Take& take) override;
  void flush(const Take& take) override;

 private:
  struct Open {
    WordQuestion question;
    WordPlace place;
  };

  void answer(const Take& take) const;

  const RowBatch* rows_;
  Expander* expander_;
  const Scorer* scorer_;
  std::span<Open> open_;
  size_t count_ = 0;
};

}  // namespace hsm
