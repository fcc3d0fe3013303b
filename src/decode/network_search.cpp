#include "decode/network_search.h"

#include <algorithm>
#include <stdexcept>
#include <utility>

namespace hsm {
namespace {

constexpr int64_t kPhrases = 32;      // phrases of an input at a time, at most
constexpr int64_t kQuestions = 4096;  // words asked for at a time

int64_t phrases_of(const NetworkOptions& options) {
  return std::min(options.beam, kPhrases);
}

}  // namespace

NetworkSearch::Slot::Slot(Arena& arena, const NetworkOptions& options)
    : pool(arena, options.beam, 0, options.max_positions),
      live(arena.take<Path>(options.beam, "live paths")),
      next(arena.take<Path>(options.beam, "live paths")),
      nodes(arena.take<int32_t>(options.beam, "live paths")),
      memory(arena.take<PathCandidate>(2 * options.beam, "candidates")),
      phrases(arena.take<Phrase>(phrases_of(options), "phrases")),
      sources(arena.take<RowSource>(rows_per_input(options), "rows")) {}

NetworkSearch::NetworkSearch(Arena& arena, const NetworkOptions& options, RowEngine& engine, int64_t slots)
    : options_(options),
      end_of_sentence_(engine.end_of_sentence()),
      ragged_clusters_(engine.ragged_clusters()),
      lookup_(engine.make_word_lookup(kQuestions)),
      take_([this](const WordQuestion& question, double log_prob) { take(question, log_prob); }),
      choices_(arena.take<int32_t>(options.max_positions, "output")) {
  slots_.reserve(static_cast<size_t>(slots));
  for (int64_t slot = 0; slot < slots; ++slot) slots_.emplace_back(arena, options);
}

int64_t NetworkSearch::rows_per_input(const NetworkOptions& options) {
  return options.beam + phrases_of(options);
}

void NetworkSearch::begin(int64_t index, const Prompt& prompt, const RowSource& source) {
  if (std::cmp_greater(prompt.network.positions.size(), options_.max_positions)) {
    throw std::invalid_argument("NetworkSearch: a network of more positions than were planned for");
  }
  Slot& slot = slots_[static_cast<size_t>(index)];
  slot.pool.clear();
  slot.network = &prompt.network;
  slot.position = 0;
  slot.stage = Stage::feeding;
  slot.live[0] = {};
  slot.live[0].node = kNoNode;
  slot.live_count = 1;
  slot.phrase_count = 0;
  slot.fed = 0;
  slot.sources[0] = source;
  slot.wanted = 1;
}

std::span<const RowSource> NetworkSearch::wanted(int64_t index) const {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  return slot.sources.first(static_cast<size_t>(slot.wanted));
}

double NetworkSearch::total(double channel, double log_prob, int64_t words, int64_t unknown) const {
  const double bonus =
      options_.word_bonus * static_cast<double>(words) - options_.oov_penalty * static_cast<double>(unknown);
  return options_.lm_weight == 0 ? channel + bonus : channel + options_.lm_weight * log_prob + bonus;
}

void NetworkSearch::step(std::span<const ActiveInput> active) {
  for (const ActiveInput& input : active) {
    Slot& slot = slots_[static_cast<size_t>(input.slot)];
    slot.first_row = input.first_row;
    slot.wanted = 0;
    if (slot.stage == Stage::feeding) {
      feed_more(slot);
      if (slot.wanted == 0) ask_all(slot, static_cast<int32_t>(input.slot));
      continue;
    }
    for (int64_t k = 0; k < slot.phrase_count; ++k) {
      Phrase& phrase = slot.phrases[static_cast<size_t>(k)];
      phrase.row = static_cast<int32_t>(slot.first_row + slot.live_count + k);
      const Alternative& words = slot.open[static_cast<size_t>(phrase.alternative)];
      ask(phrase.row, words.tokens[static_cast<size_t>(phrase.scored)], static_cast<int32_t>(input.slot),
          Kind::phrase, k);
    }
  }
  for (bool asked = true; asked;) {
    lookup_->flush(take_);
    asked = false;
    for (const ActiveInput& input : active) {
      Slot& slot = slots_[static_cast<size_t>(input.slot)];
      if (slot.wanted == 0) asked |= renew_phrases(slot, static_cast<int32_t>(input.slot));
    }
  }
  for (const ActiveInput& input : active) {
    Slot& slot = slots_[static_cast<size_t>(input.slot)];
    if (slot.wanted > 0) continue;
    if (slot.at_end()) {
      rank(slot);
    } else if (slot.phrase_count > 0) {
      move_phrases_on(slot);
    } else {
      choose_paths(slot);
    }
  }
}

// The next words of the alternatives that were taken, while there are any.
void NetworkSearch::feed_more(Slot& slot) const {
  if (slot.position == 0) return;
  bool any = false;
  for (int64_t i = 0; i < slot.live_count; ++i) {
    const auto& tokens = slot.taken(slot.live[static_cast<size_t>(i)]).tokens;
    const bool more = slot.fed < tokens.size();
    slot.sources[static_cast<size_t>(i)] = {static_cast<int32_t>(slot.first_row + i),
                                            more ? tokens[slot.fed] : kCarried};
    any |= more;
  }
  ++slot.fed;
  if (any) slot.wanted = slot.live_count;
}

// Opens a position.
void NetworkSearch::ask_all(Slot& slot, int32_t index) {
  possible_ += slot.live_count * ragged_clusters_;
  slot.candidates = DistinctPaths(slot.memory);
  slot.cursor = 0;
  slot.open = slot.at_end() ? std::span<const Alternative>{} : slot.network->positions[slot.position];
  for (int64_t parent = 0; parent < slot.live_count; ++parent) {
    const int64_t row = slot.first_row + parent;
    if (slot.at_end()) ask(row, end_of_sentence_, index, Kind::end, parent);
    for (size_t a = 0; a < slot.open.size(); ++a) {
      const auto& tokens = slot.open[a].tokens;
      const auto place = parent * static_cast<int64_t>(slot.open.size()) + static_cast<int64_t>(a);
      if (tokens.empty()) {
        offer(slot, parent, static_cast<int64_t>(a), slot.live[static_cast<size_t>(parent)].log_prob);
      } else if (tokens.size() == 1) {
        ask(row, tokens[0], index, Kind::word, place);
      }
    }
  }
}

void NetworkSearch::ask(int64_t row, int32_t word, int32_t index, Kind kind, int64_t place) {
  const int64_t tag = place * 3 + static_cast<int64_t>(kind);
  lookup_->ask({static_cast<int32_t>(row), word, index, tag}, take_);
}

void NetworkSearch::take(const WordQuestion& question, double log_prob) {
  Slot& slot = slots_[static_cast<size_t>(question.owner)];
  const auto kind = static_cast<Kind>(question.tag % 3);
  const auto place = static_cast<size_t>(question.tag / 3);
  if (kind == Kind::end) {
    slot.live[place].log_prob += log_prob;
  } else if (kind == Kind::phrase) {
    slot.phrases[place].log_prob += log_prob;
    ++slot.phrases[place].scored;
  } else {
    const size_t parent = place / slot.open.size();
    offer(slot, static_cast<int64_t>(parent), static_cast<int64_t>(place % slot.open.size()),
          slot.live[parent].log_prob + log_prob);
  }
}

void NetworkSearch::offer(Slot& slot, int64_t parent, int64_t alternative, double log_prob) const {
  const Path& path = slot.live[static_cast<size_t>(parent)];
  const Alternative& taken = slot.open[static_cast<size_t>(alternative)];
  const double channel = path.channel + taken.score;
  uint64_t hash = path.hash;
  for (const int32_t token : taken.tokens) hash = hash_with(hash, token);
  const auto words = path.words + static_cast<int64_t>(taken.tokens.size());
  slot.candidates.offer({total(channel, log_prob, words, path.unknown + taken.unknown), channel, log_prob,
                         hash, static_cast<int32_t>(parent), static_cast<int32_t>(alternative)});
}

// Offers phrases that are complete, drops them and those that can't be among the best, and takes up others
// in their place; true when that asked for something.
bool NetworkSearch::renew_phrases(Slot& slot, int32_t index) {
  int64_t kept = 0;
  for (int64_t k = 0; k < slot.phrase_count; ++k) {
    const Phrase phrase = slot.phrases[static_cast<size_t>(k)];
    if (keep(slot, phrase)) slot.phrases[static_cast<size_t>(kept++)] = phrase;
  }
  slot.phrase_count = kept;
  const auto alternatives = static_cast<int64_t>(slot.open.size());
  bool asked = false;
  for (; slot.cursor < slot.live_count * alternatives; ++slot.cursor) {
    if (slot.phrase_count == static_cast<int64_t>(slot.phrases.size())) break;
    const auto parent = static_cast<int32_t>(slot.cursor / alternatives);
    const auto alternative = static_cast<int32_t>(slot.cursor % alternatives);
    const auto& tokens = slot.open[static_cast<size_t>(alternative)].tokens;
    if (tokens.size() < 2) continue;
    const auto row = static_cast<int32_t>(slot.first_row + parent);
    slot.phrases[static_cast<size_t>(slot.phrase_count)] = {slot.live[static_cast<size_t>(parent)].log_prob,
                                                            parent, alternative, 0, row};
    ask(row, tokens[0], index, Kind::phrase, slot.phrase_count++);
    asked = true;
  }
  return asked;
}

bool NetworkSearch::keep(Slot& slot, const Phrase& phrase) const {
  const Path& parent = slot.live[static_cast<size_t>(phrase.parent)];
  const Alternative& words = slot.open[static_cast<size_t>(phrase.alternative)];
  const auto length = static_cast<int64_t>(words.tokens.size());
  if (phrase.scored == length) {
    offer(slot, phrase.parent, phrase.alternative, phrase.log_prob);
    return false;
  }
  return total(parent.channel + words.score, phrase.log_prob, parent.words + length,
               parent.unknown + words.unknown) >= slot.candidates.floor();
}

void NetworkSearch::move_phrases_on(Slot& slot) const {
  for (int64_t i = 0; i < slot.live_count; ++i) {
    slot.sources[static_cast<size_t>(i)] = {static_cast<int32_t>(slot.first_row + i), kCarried};
  }
  slot.wanted = slot.live_count;
  for (const Phrase& phrase : slot.phrases.first(static_cast<size_t>(slot.phrase_count))) {
    const auto& tokens = slot.open[static_cast<size_t>(phrase.alternative)].tokens;
    slot.sources[static_cast<size_t>(slot.wanted++)] = {phrase.row,
                                                        tokens[static_cast<size_t>(phrase.scored) - 1]};
  }
  slot.stage = Stage::phrases;
}

// Replaces the live paths by the best that are one position longer.
void NetworkSearch::choose_paths(Slot& slot) const {
  if (slot.pool.collection_due(options_.beam)) {
    const auto nodes = slot.nodes.first(static_cast<size_t>(slot.live_count));
    for (size_t i = 0; i < nodes.size(); ++i) nodes[i] = slot.live[i].node;
    slot.pool.collect(nodes, {});
    for (size_t i = 0; i < nodes.size(); ++i) slot.live[i].node = nodes[i];
  }
  const auto best = slot.candidates.sort();
  for (size_t i = 0; i < best.size(); ++i) {
    add_path(slot, best[i], slot.next[i]);
    const auto& tokens = slot.open[static_cast<size_t>(best[i].alternative)].tokens;
    slot.sources[i] = {static_cast<int32_t>(slot.first_row) + best[i].parent,
                       tokens.empty() ? kCarried : tokens[0]};
  }
  std::swap(slot.live, slot.next);
  slot.live_count = static_cast<int64_t>(best.size());
  slot.wanted = slot.live_count;
  slot.stage = Stage::feeding;
  slot.fed = 1;
  ++slot.position;
}

void NetworkSearch::add_path(Slot& slot, const PathCandidate& candidate, Path& path) const {
  const Path& parent = slot.live[static_cast<size_t>(candidate.parent)];
  const Alternative& taken = slot.open[static_cast<size_t>(candidate.alternative)];
  path.channel = candidate.channel;
  path.log_prob = candidate.log_prob;
  path.hash = candidate.words;
  path.words = parent.words + static_cast<int64_t>(taken.tokens.size());
  path.unknown = parent.unknown + taken.unknown;
  path.last = candidate.alternative;
  path.node = slot.pool.add(parent.node, candidate.alternative);
}

// The end symbol was the last to be scored: brings complete paths into order.
void NetworkSearch::rank(Slot& slot) const {
  DistinctPaths ranked(slot.memory);
  for (int64_t i = 0; i < slot.live_count; ++i) {
    const Path& path = slot.live[static_cast<size_t>(i)];
    ranked.offer({total(path.channel, path.log_prob, path.words, path.unknown), path.channel, path.log_prob,
                  path.hash, static_cast<int32_t>(i), 0});
  }
  const auto best = ranked.sort();
  for (size_t i = 0; i < best.size(); ++i) slot.next[i] = slot.live[static_cast<size_t>(best[i].parent)];
  std::swap(slot.live, slot.next);
  slot.live_count = static_cast<int64_t>(best.size());
}

void NetworkSearch::write(int64_t index, const Prompt& prompt, ResultSink& sink) {
  const Slot& slot = slots_[static_cast<size_t>(index)];
  const int64_t count = std::min(slot.live_count, options_.nbest);
  const auto choices = choices_.first(prompt.network.positions.size());
  sink.begin(prompt, count);
  for (int64_t i = 0; i < count; ++i) {
    const Path& path = slot.live[static_cast<size_t>(i)];
    slot.pool.words(path.node, choices);
    sink.path(prompt, {total(path.channel, path.log_prob, path.words, path.unknown), path.channel,
                       path.log_prob, path.words, path.unknown, choices});
    words_written_ += path.words;
  }
  sink.end(prompt);
}

void NetworkSearch::report(DecodeStats& stats) const {
  stats.tokens = words_written_;
  stats.possible_expansions = possible_;
  for (const Slot& slot : slots_) stats.peak_nodes = std::max(stats.peak_nodes, slot.pool.peak());
}

}  // namespace hsm
