#pragma once
#include <cstdint>
#include <exception>
#include <span>
#include <vector>

#include "decode/arena.h"
#include "decode/prompt.h"
#include "decode/result.h"
#include "decode/row_engine.h"
#include "decode/strategy.h"

namespace hsm {

/// Runs a strategy over a stream of prompts: feeds each prompt at width 1, then the rows that the strategy
/// wants, all inputs in work together in one batch a step. An input takes a free slot as soon as it is there
/// and results leave in the order of the input, so at most as many are under way or waiting as there are
/// slots.
class StepLoop {
 public:
  StepLoop(Arena& arena, RowEngine& engine, Strategy& strategy, int64_t slots);

  /// Until the feed ends. An error of the feed is thrown on when the results before it are out.
  void run(PromptFeed& feed, ResultSink& sink);

  [[nodiscard]] int64_t inputs() const noexcept { return inputs_; }
  [[nodiscard]] int64_t steps() const noexcept { return steps_; }
  /// Rows fed in all steps together: prompt tokens and hypotheses.
  [[nodiscard]] int64_t rows_fed() const noexcept { return rows_fed_; }

 private:
  enum class Phase { free, prompt, search, done };
  struct Slot {
    Phase phase = Phase::free;
    Prompt prompt;
    int64_t fed = 0;           ///< prompt tokens fed, the start symbol included
    int32_t row = kZeroState;  ///< of the state after them
  };

  [[nodiscard]] int32_t prompt_token(const Slot& slot) const;
  Slot& slot_of(int64_t input) { return slots_[static_cast<size_t>(input) % slots_.size()]; }
  void fill(PromptFeed& feed);
  void begin_if_fed(int64_t slot);
  void write_finished(ResultSink& sink);
  void step();

  RowEngine* engine_;
  Strategy* strategy_;
  std::vector<Slot> slots_;
  std::span<RowSource> sources_;
  std::span<ActiveInput> active_;
  int64_t next_input_ = 0;   ///< to be taken from the feed
  int64_t next_output_ = 0;  ///< to be written
  bool feed_ended_ = false;
  std::exception_ptr feed_error_;
  int64_t inputs_ = 0;
  int64_t steps_ = 0;
  int64_t rows_fed_ = 0;
};

}  // namespace hsm
