#include "decode/next_words.h"

#include <algorithm>

namespace hsm {

NextWords::NextWords(Arena& arena, const NextWordOptions& options, RowEngine& engine, int64_t slots)
    : options_(options), slots_(static_cast<size_t>(slots)), queries_(arena, slots, "candidates") {
  options_.count = std::min(options.count, engine.words());
  search_ = engine.make_word_search(slots, 1, options_.count);
  for (Slot& slot : slots_) slot.memory = arena.take<Candidate>(options_.count + 1, "candidates");
}

void NextWords::begin(int64_t index, const Prompt& prompt, const RowSource& source) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.source = source;
  slot.done = false;
  slot.seen.clear();
  if (!options_.exclude_seen) return;
  slot.seen = prompt.tokens;
  std::sort(slot.seen.begin(), slot.seen.end());
}

std::span<const RowSource> NextWords::wanted(int64_t index) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return {&slot.source, slot.done ? size_t{0} : size_t{1}};
}

void NextWords::step(std::span<const ActiveInput> active) {
  queries_.clear();
  for (const ActiveInput& input : active) {
    const Slot& slot = slots_[static_cast<size_t>(input.slot)];
    queries_.push_back(query_for_row(input.first_row, slot.memory));
    queries_.back().excluded = slot.seen;
  }
  search_->run(queries_.all());
  for (size_t i = 0; i < active.size(); ++i) {
    rank(slots_[static_cast<size_t>(active[i].slot)], queries_.all()[i]);
  }
}

void NextWords::rank(Slot& slot, CandidateQuery& query) const {
  const auto ranked = rank_with_end(query, slot.memory);
  slot.result = ranked.first(std::min(ranked.size(), static_cast<size_t>(options_.count)));
  slot.done = true;
}

void NextWords::write(int64_t index, const Prompt& prompt, ResultSink& sink) {
  sink.next_words(prompt, slots_[static_cast<size_t>(index)].result);
}

}  // namespace hsm
