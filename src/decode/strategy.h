#pragma once
#include <cstdint>
#include <span>

#include "decode/result.h"
#include "decode/row_engine.h"
#include "decode/stats.h"

namespace hsm {

/// Rows of one input in the step just made: as many as it wanted, from first_row on.
struct ActiveInput {
  int64_t slot = 0;
  int64_t first_row = 0;
};

/// What to do with the model's distributions: beam search, sampling, or best next words. Several inputs are
/// worked on together, each in a slot; what becomes of one doesn't depend on the others.
class Strategy {
 public:
  virtual ~Strategy() = default;

  /// Most rows that one input ever wants.
  [[nodiscard]] virtual int64_t rows_per_input() const = 0;
  /// An input takes the slot. `source` is its last token (of the prompt, or the start symbol) and the row of
  /// the state before it.
  virtual void begin(int64_t slot, const Prompt& prompt, const RowSource& source) = 0;
  /// Rows that the slot wants fed next; none when its input is complete.
  [[nodiscard]] virtual std::span<const RowSource> wanted(int64_t slot) const = 0;
  /// A step was made of all that was wanted: takes it in and says anew what is wanted.
  virtual void step(std::span<const ActiveInput> active) = 0;
  /// Hands over a complete input's result, between two steps; the slot is free afterwards.
  virtual void write(int64_t slot, const Prompt& prompt, ResultSink& sink) = 0;
  /// Fills the fields that the strategy knows.
  virtual void report(DecodeStats& stats) const = 0;
};

}  // namespace hsm
