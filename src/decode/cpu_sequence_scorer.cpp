#include "decode/cpu_sequence_scorer.h"

#include <algorithm>

namespace hsm {

CpuSequenceScorer::CpuSequenceScorer(Arena& arena, RowBatch& rows, Expander& expander, int64_t slots,
                                     int64_t max_sequences)
    : rows_(&rows),
      expander_(&expander),
      scorer_(&rows.scorer()),
      origins_(arena.take<float>(slots * scorer_->state_size(), "states")),
      order_(arena.take<int32_t>(max_sequences, "output")),
      tokens_(arena.take<int32_t>(max_sequences, "output")) {}

std::span<float> CpuSequenceScorer::origin(int64_t slot) const {
  const auto size = static_cast<size_t>(scorer_->state_size());
  return origins_.subspan(static_cast<size_t>(slot) * size, size);
}

void CpuSequenceScorer::remember(int64_t slot, int32_t row) {
  if (row == kZeroState) {
    std::ranges::fill(origin(slot), 0.0F);
  } else {
    std::ranges::copy(rows_->state(row), origin(slot).begin());
  }
}

void CpuSequenceScorer::run(std::span<const ScoredSequence> sequences, int64_t slot, int32_t first_token) {
  const auto state = origin(slot);
  const auto length = [&](int32_t sequence) {
    return sequences[static_cast<size_t>(sequence)].tokens.size();
  };
  const auto order = order_.first(sequences.size());
  order_longest_first(sequences, order);
  const auto states = rows_->spare_states();
  for (size_t row = 0; row < order.size(); ++row) {
    std::copy(state.begin(), state.end(), states.begin() + static_cast<int64_t>(row * state.size()));
    tokens_[row] = first_token;
  }
  int64_t count = static_cast<int64_t>(order.size());
  for (int64_t position = 0;; ++position) {
    while (count > 0 && static_cast<int64_t>(length(order[static_cast<size_t>(count - 1)])) <= position)
      --count;
    if (count == 0) return;
    rows_->feed(states, tokens_.first(static_cast<size_t>(count)), count);
    read(sequences, position, count);
  }
}

// Takes the scores of the tokens at `position`, which are then fed next.
void CpuSequenceScorer::read(std::span<const ScoredSequence> sequences, int64_t position, int64_t count) {
  expander_->clear();
  for (int32_t row = 0; row < count; ++row) {
    const int32_t index = order_[static_cast<size_t>(row)];
    const ScoredSequence& sequence = sequences[static_cast<size_t>(index)];
    const int32_t token = sequence.tokens[static_cast<size_t>(position)];
    tokens_[static_cast<size_t>(row)] = token;
    const WordPlace place = scorer_->place(token);
    const auto root = rows_->root(row);
    if (place.cluster < 0) {
      sequence.log_probs[static_cast<size_t>(position)] = double{root[static_cast<size_t>(place.index)]};
      continue;
    }
    sequence.log_probs[static_cast<size_t>(position)] =
        double{root[static_cast<size_t>(scorer_->shortlist() + place.cluster)]};
    if (scorer_->cluster_words(place.cluster).size() == 1) continue;
    if (expander_->full()) harvest(sequences, position);
    expander_->add({place.cluster, row, index, place.index});
  }
  harvest(sequences, position);
}

void CpuSequenceScorer::harvest(std::span<const ScoredSequence> sequences, int64_t position) {
  if (expander_->empty()) return;
  expander_->run(*rows_);
  for (size_t i = 0; i < expander_->items().size(); ++i) {
    const Expansion& item = expander_->items()[i];
    sequences[static_cast<size_t>(item.owner)].log_probs[static_cast<size_t>(position)] +=
        double{expander_->leaves(static_cast<int64_t>(i))[static_cast<size_t>(item.tag)]};
  }
  expander_->clear();
}

}  // namespace hsm
