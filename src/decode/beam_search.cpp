#include "decode/beam_search.h"

#include <algorithm>
#include <utility>

#include "decode/selection.h"

namespace hsm {

BeamSearch::Slot::Slot(Arena& arena, const BeamOptions& options)
    : pool(arena, options.beam, options.nbest, options.length.max_length),
      finished(arena, options.nbest),
      nodes(arena.take<int32_t>(options.beam, "live hypotheses")),
      next_nodes(arena.take<int32_t>(options.beam, "live hypotheses")),
      scores(arena.take<double>(options.beam, "live hypotheses")),
      sources(arena.take<RowSource>(options.beam, "live hypotheses")),
      word_memory(arena.take<Candidate>(options.beam, "candidates")),
      end_memory(arena.take<Candidate>(options.beam, "candidates")),
      finished_nodes(arena.take<int32_t>(options.nbest, "finished hypotheses")) {}

BeamSearch::BeamSearch(Arena& arena, const BeamOptions& options, RowEngine& engine, int64_t slots)
    : options_(options),
      penalty_(options.length.length_penalty),
      end_of_sentence_(engine.end_of_sentence()),
      search_(engine.make_word_search(slots, options.beam, options.beam)),
      queries_(arena, slots, "candidates"),
      sequence_scorer_(options.token_scores ? engine.make_sequence_scorer(slots, options.nbest) : nullptr),
      outputs_(arena, options.nbest, "output"),
      tokens_(arena.take<int32_t>(options.nbest * options.length.max_length, "output")),
      token_log_probs_(arena.take<double>(
          options.token_scores ? options.nbest * options.length.max_length : 0, "output")) {
  slots_.reserve(static_cast<size_t>(slots));
  for (int64_t slot = 0; slot < slots; ++slot) slots_.emplace_back(arena, options);
}

void BeamSearch::begin(int64_t index, const Prompt& /*prompt*/, const RowSource& source) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.pool.clear();
  slot.finished.clear();
  slot.first_token = source.token;
  if (sequence_scorer_ != nullptr) sequence_scorer_->remember(index, source.row);
  slot.live = 1;
  slot.length = 0;
  slot.nodes[0] = kNoNode;
  slot.scores[0] = 0;
  slot.sources[0] = source;
  slot.done = options_.length.max_length == 0;
  if (slot.done) slot.finished.add({0, 0, kNoNode, 0, false});
}

std::span<const RowSource> BeamSearch::wanted(int64_t index) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return slot.sources.first(slot.done ? 0 : static_cast<size_t>(slot.live));
}

void BeamSearch::step(std::span<const ActiveInput> active) {
  queries_.clear();
  for (const ActiveInput& input : active) {
    queries_.push_back(query(slots_[static_cast<size_t>(input.slot)], input.first_row));
  }
  search_->run(queries_.all());
  for (size_t i = 0; i < active.size(); ++i) {
    Slot& slot = slots_[static_cast<size_t>(active[i].slot)];
    take_in(slot, queries_.all()[i], active[i].first_row);
    slot.done = complete(slot);
  }
}

CandidateQuery BeamSearch::query(Slot& slot, int64_t first_row) const {
  CandidateQuery query;
  query.first_row = first_row;
  query.scores = slot.scores.first(static_cast<size_t>(slot.live));
  query.end_allowed = slot.length >= options_.length.min_length;
  query.words = BestCandidates(slot.word_memory);
  query.ends = BestCandidates(slot.end_memory.first(static_cast<size_t>(slot.live)));
  return query;
}

// Replaces the live hypotheses by those that the candidates make.
void BeamSearch::take_in(Slot& slot, CandidateQuery& query, int64_t first_row) const {
  if (slot.pool.collection_due(options_.beam)) collect(slot);
  const Selection chosen = select(query.words.sort(), query.ends.sort(), options_.beam);
  ++slot.length;
  const bool last = slot.length == options_.length.max_length;
  auto end = chosen.finished.begin();
  const auto finish_ended = [&] {
    finish(slot, *end, slot.nodes[static_cast<size_t>(end->parent)], true);
    ++end;
  };
  for (size_t i = 0; i < chosen.live.size(); ++i) {
    const Candidate& candidate = chosen.live[i];
    while (end != chosen.finished.end() && better(*end, candidate)) finish_ended();
    slot.next_nodes[i] = slot.pool.add(slot.nodes[static_cast<size_t>(candidate.parent)], candidate.word);
    slot.scores[i] = candidate.score;
    slot.sources[i] = {static_cast<int32_t>(first_row) + candidate.parent, candidate.word};
    if (last) finish(slot, candidate, slot.next_nodes[i], false);
  }
  while (end != chosen.finished.end()) finish_ended();
  std::swap(slot.nodes, slot.next_nodes);
  slot.live = static_cast<int64_t>(chosen.live.size());
}

void BeamSearch::finish(Slot& slot, const Candidate& candidate, int32_t node, bool ended) const {
  slot.finished.add({penalty_.score(candidate.score, slot.length), candidate.score, node,
                     static_cast<int32_t>(slot.length), ended});
}

void BeamSearch::collect(Slot& slot) const {
  const auto finished = slot.finished.entries();
  const auto finished_nodes = slot.finished_nodes.first(finished.size());
  for (size_t i = 0; i < finished.size(); ++i) finished_nodes[i] = finished[i].node;
  slot.pool.collect(slot.nodes.first(static_cast<size_t>(slot.live)), finished_nodes);
  for (size_t i = 0; i < finished.size(); ++i) finished[i].node = finished_nodes[i];
}

// Nothing is live, or no live hypothesis can come to a place among the n best any more. An equal score
// would come later and so stand behind.
bool BeamSearch::complete(const Slot& slot) const {
  const LengthOptions& limits = options_.length;
  if (slot.live == 0 || slot.length == limits.max_length) return true;
  const int64_t shortest = std::max(slot.length + 1, std::min(limits.min_length + 1, limits.max_length));
  return slot.finished.closed_to(penalty_.bound(slot.scores[0], shortest, limits.max_length));
}

void BeamSearch::write(int64_t index, const Prompt& prompt, ResultSink& sink) {
  Slot& slot = slots_[static_cast<size_t>(index)];
  const auto finished = slot.finished.entries();
  outputs_.clear();
  for (size_t i = 0; i < finished.size(); ++i) {
    const auto first = i * static_cast<size_t>(options_.length.max_length);
    const auto length = static_cast<size_t>(finished[i].length);
    const auto tokens = tokens_.subspan(first, length);
    slot.pool.words(finished[i].node, tokens.first(finished[i].ended ? length - 1 : length));
    if (finished[i].ended) tokens[length - 1] = end_of_sentence_;
    outputs_.push_back(
        {tokens, options_.token_scores ? token_log_probs_.subspan(first, length) : std::span<double>{}});
    tokens_written_ += finished[i].length;
  }
  if (sequence_scorer_ != nullptr) {
    sequence_scorer_->run(outputs_.all(), index, slot.first_token);
  }
  sink.begin(prompt, static_cast<int64_t>(finished.size()));
  for (size_t i = 0; i < finished.size(); ++i) {
    const ScoredSequence& output = outputs_.all()[i];
    sink.hypothesis(prompt, {finished[i].log_prob, finished[i].score, finished[i].ended, output.tokens,
                             output.log_probs});
  }
  sink.end(prompt);
}

void BeamSearch::report(DecodeStats& stats) const {
  stats.tokens = tokens_written_;
  stats.possible_expansions = search_->possible_expansions();
  for (const Slot& slot : slots_) stats.peak_nodes = std::max(stats.peak_nodes, slot.pool.peak());
}

}  // namespace hsm
