#include "gpu/engine/decode_word_scores.h"

#include <algorithm>
#include <cmath>

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr std::string_view kScores = "GPU word scores";

}  // namespace

DecodeWordScores::DecodeWordScores(Arena& host, DeviceArena& device, DecodeRows& rows)
    : rows_(&rows),
      capacity_(rows.expansion().capacity),
      places_(capacity_),
      memory_(host, device, places_.layout, "words asked for", kScores),
      log_probs_(host.take<double>(capacity_, "words asked for")) {
  pass_.head = rows.head();
  pass_.memory = rows.expansion();
  pass_.memory.pair = memory_.device(places_.pair);
  pass_.memory.pair_count = memory_.device(places_.pair_count);
  pass_.row = memory_.device(places_.row);
  pass_.column = memory_.device(places_.column);
  pass_.leaf = memory_.device(places_.leaf);
  pass_.log_prob = device.take<double>(capacity_, kScores);
}

void DecodeWordScores::run(std::span<Question> questions) {
  for_groups(questions, capacity_, [this](std::span<Question> together) { run_together(together); });
}

void DecodeWordScores::run_together(std::span<Question> questions) {
  int64_t rows = 0;
  for (size_t i = 0; i < questions.size(); ++i) {
    const DecodeModel::Place place = rows_->model().place(questions[i].word);
    const bool expands = place.leaf >= 0;
    memory_.host(places_.pair)[i] = {0, 0, std::max(place.cluster, 0)};
    memory_.host(places_.pair_count)[i] = expands ? 1 : 0;
    memory_.host(places_.row)[i] = questions[i].row;
    memory_.host(places_.column)[i] = place.column;
    memory_.host(places_.leaf)[i] = place.leaf;
    rows = std::max(rows, int64_t{questions[i].row} + 1);
    if (expands) rows_->count_expansions(1);
  }
  memory_.upload(rows_->kernels());
  pass_.root = rows_->root(0, rows);
  pass_.questions = static_cast<int32_t>(questions.size());
  rows_->kernels().word_scores(pass_);
  const auto answers = log_probs_.first(questions.size());
  rows_->kernels().download(pass_.log_prob, static_cast<int64_t>(answers.size_bytes()), answers.data());
  for (size_t i = 0; i < questions.size(); ++i) {
    if (std::isnan(answers[i])) {
      throw not_numbers();
    }
    questions[i].log_prob = answers[i];
  }
}

DecodeSequenceScorer::DecodeSequenceScorer(Arena& host, DeviceArena& device, DecodeRows& rows,
                                           DecodeWordScores& scores, int64_t slots, int64_t max_sequences)
    : rows_(&rows),
      scores_(&scores),
      origins_(rows.take_states(device, slots)),
      order_(host.take<int32_t>(max_sequences, "output")),
      tokens_(host.take<int32_t>(max_sequences, "output")),
      questions_(host.take<DecodeWordScores::Question>(max_sequences, "output")) {}

void DecodeSequenceScorer::remember(int64_t slot, int32_t row) {
  rows_->copy_states(rows_->current(), {&row, 1}, origins_, slot);
}

void DecodeSequenceScorer::run(std::span<const ScoredSequence> sequences, int64_t slot, int32_t first_token) {
  const auto length = [&](int32_t sequence) {
    return static_cast<int64_t>(sequences[static_cast<size_t>(sequence)].tokens.size());
  };
  const auto order = order_.first(sequences.size());
  order_longest_first(sequences, order);
  const auto tokens = tokens_.first(sequences.size());
  std::ranges::fill(tokens, static_cast<int32_t>(slot));
  rows_->copy_states(origins_, tokens, rows_->spare(), 0);
  std::ranges::fill(tokens, first_token);
  size_t count = order.size();
  for (int64_t position = 0;; ++position) {
    while (count > 0 && length(order[count - 1]) <= position) --count;
    if (count == 0) return;
    rows_->feed(rows_->spare(), tokens.first(count), static_cast<int64_t>(count));
    for (size_t row = 0; row < count; ++row) {
      tokens[row] = sequences[static_cast<size_t>(order[row])].tokens[static_cast<size_t>(position)];
      questions_[row] = {static_cast<int32_t>(row), tokens[row]};
    }
    scores_->run(questions_.first(count));
    for (size_t row = 0; row < count; ++row) {
      sequences[static_cast<size_t>(order[row])].log_probs[static_cast<size_t>(position)] =
          questions_[row].log_prob;
    }
  }
}

DecodeWordLookup::DecodeWordLookup(Arena& host, DecodeWordScores& scores, int64_t capacity)
    : scores_(&scores),
      open_(host.take<WordQuestion>(capacity, "words asked for")),
      questions_(host.take<DecodeWordScores::Question>(capacity, "words asked for")) {}

void DecodeWordLookup::ask(const WordQuestion& question, const Take& take) {
  open_[count_] = question;
  questions_[count_++] = {question.row, question.word};
  if (count_ == open_.size()) flush(take);
}

void DecodeWordLookup::flush(const Take& take) {
  const auto questions = questions_.first(count_);
  count_ = 0;
  scores_->run(questions);
  for (size_t i = 0; i < questions.size(); ++i) take(open_[i], questions[i].log_prob);
}

DecodeAllowedMass::DecodeAllowedMass(Arena& host, const DecodeRows& rows, DecodeWordScores& scores,
                                     const WordFilter& filter)
    : scores_(&scores),
      end_of_sentence_(rows.model().end_of_sentence),
      open_(host.take<DecodeWordScores::Question>(scores.capacity(), "samples")),
      owner_(host.take<int32_t>(scores.capacity(), "samples")) {
  if (host.measuring()) return;
  end_filtered_ = !filter.allows(end_of_sentence_);
  for (int32_t word = 0; word < rows.head().words; ++word) {
    if (!filter.allows(word)) filtered_.push_back(word);
  }
}

void DecodeAllowedMass::run(std::span<MassQuestion> questions) {
  size_t count = 0;
  const auto flush = [&] {
    scores_->run(open_.first(count));
    for (size_t i = 0; i < count; ++i) {
      questions[static_cast<size_t>(owner_[i])].mass -= std::exp(open_[i].log_prob);
    }
    count = 0;
  };
  const auto ask = [&](size_t owner, int32_t word) {
    owner_[count] = static_cast<int32_t>(owner);
    open_[count++] = {static_cast<int32_t>(questions[owner].row), word};
    if (count == open_.size()) flush();
  };
  for (size_t i = 0; i < questions.size(); ++i) {
    questions[i].mass = 1;
    for (const int32_t word : filtered_) ask(i, word);
    if (!questions[i].end_allowed && !end_filtered_) ask(i, end_of_sentence_);
  }
  flush();
}

}  // namespace hsm
