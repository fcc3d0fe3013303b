#include "decode/step_loop.h"

#include <algorithm>

namespace hsm {

StepLoop::StepLoop(Arena& arena, RowEngine& engine, Strategy& strategy, int64_t slots)
    : engine_(&engine),
      strategy_(&strategy),
      slots_(static_cast<size_t>(slots)),
      sources_(arena.take<RowSource>(slots * strategy.rows_per_input(), "rows")),
      active_(arena.take<ActiveInput>(slots, "rows")) {}

void StepLoop::run(PromptFeed& feed, ResultSink& sink) {
  for (Slot& slot : slots_) slot.phase = Phase::free;
  next_input_ = 0;
  next_output_ = 0;
  feed_ended_ = false;
  feed_error_ = nullptr;
  while (true) {
    fill(feed);
    if (next_output_ == next_input_) break;  // the feed has ended and all results are out
    step();
    write_finished(sink);
  }
  if (feed_error_) std::rethrow_exception(feed_error_);
}

int32_t StepLoop::prompt_token(const Slot& slot) const {
  return slot.fed == 0 ? engine_->end_of_sentence() : slot.prompt.tokens[static_cast<size_t>(slot.fed - 1)];
}

void StepLoop::fill(PromptFeed& feed) {
  while (!feed_ended_) {
    Slot& slot = slot_of(next_input_);
    if (slot.phase != Phase::free) return;
    try {
      const auto status = feed.take(slot.prompt, next_output_ == next_input_);
      if (status == PromptFeed::Status::none_yet) return;
      feed_ended_ = status == PromptFeed::Status::end;
    } catch (...) {
      feed_error_ = std::current_exception();
      feed_ended_ = true;
    }
    if (feed_ended_) return;
    slot.phase = slot.prompt.error.empty() ? Phase::prompt : Phase::done;
    slot.fed = 0;
    slot.row = kZeroState;
    if (slot.phase == Phase::prompt) begin_if_fed(next_input_ % static_cast<int64_t>(slots_.size()));
    ++next_input_;
    ++inputs_;
  }
}

void StepLoop::begin_if_fed(int64_t index) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  if (slot.fed < static_cast<int64_t>(slot.prompt.tokens.size())) return;
  strategy_->begin(index, slot.prompt, {slot.row, prompt_token(slot)});
  slot.phase = strategy_->wanted(index).empty() ? Phase::done : Phase::search;
}

void StepLoop::write_finished(ResultSink& sink) {
  while (next_output_ < next_input_ && slot_of(next_output_).phase == Phase::done) {
    Slot& slot = slot_of(next_output_);
    if (slot.prompt.error.empty()) {
      strategy_->write(next_output_ % static_cast<int64_t>(slots_.size()), slot.prompt, sink);
    } else {
      sink.bad_line(slot.prompt);
    }
    slot.phase = Phase::free;
    ++next_output_;
  }
}

// Rows of inputs under search come first, since only they need scores.
void StepLoop::step() {
  size_t count = 0;
  size_t searching = 0;
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].phase != Phase::search) continue;
    const auto wanted = strategy_->wanted(static_cast<int64_t>(i));
    active_[searching++] = {static_cast<int64_t>(i), static_cast<int64_t>(count)};
    std::copy(wanted.begin(), wanted.end(), sources_.begin() + static_cast<int64_t>(count));
    count += wanted.size();
  }
  const auto scored = static_cast<int64_t>(count);
  for (Slot& slot : slots_) {
    if (slot.phase != Phase::prompt) continue;
    sources_[count] = {slot.row, prompt_token(slot)};
    slot.row = static_cast<int32_t>(count++);
    ++slot.fed;
  }
  if (count == 0) return;  // what is under way is complete, and waits to be written
  engine_->step(sources_.first(count), scored);
  ++steps_;
  rows_fed_ += static_cast<int64_t>(count);

  const auto active = active_.first(searching);
  if (!active.empty()) strategy_->step(active);
  for (const ActiveInput& input : active) {
    if (strategy_->wanted(input.slot).empty()) slots_[static_cast<size_t>(input.slot)].phase = Phase::done;
  }
  for (size_t i = 0; i < slots_.size(); ++i) {
    if (slots_[i].phase == Phase::prompt) begin_if_fed(static_cast<int64_t>(i));
  }
}

}  // namespace hsm
