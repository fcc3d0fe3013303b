#include "decode/ancestral_sampler.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hsm {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

bool allowed(const WordFilter& filter, const WordDraw& draw, int32_t word, int32_t end) {
  return filter.allows(word) && (word != end || draw.end_allowed);
}

int64_t scratch_row(const Scorer& scorer) {
  int64_t size = scorer.shortlist() + scorer.clusters();
  for (int64_t c = 0; c < scorer.clusters(); ++c) {
    size = std::max(size, static_cast<int64_t>(scorer.cluster_words(c).size()));
  }
  return size;
}

// Logarithm of the sum of the exponentials; turns the values into exponentials relative to the largest.
double exponentiate(std::span<double> values) {
  const double largest = *std::max_element(values.begin(), values.end());
  if (largest == -std::numeric_limits<double>::infinity()) return largest;
  double sum = 0;
  for (double& value : values) {
    value = std::exp(value - largest);
    sum += value;
  }
  return largest + std::log(sum);
}

// Index of a weight, drawn in proportion by u in [0, 1).
size_t pick(std::span<const double> weights, double u) {
  double left = u * std::accumulate(weights.begin(), weights.end(), 0.0);
  size_t last = 0;
  for (size_t i = 0; i < weights.size(); ++i) {
    if (weights[i] <= 0) continue;
    last = i;
    if (left < weights[i]) return i;
    left -= weights[i];
  }
  return last;  // where rounding leaves something over
}

}  // namespace

AncestralSampler::AncestralSampler(Arena& arena, const RowBatch& rows, Expander& expander,
                                   const WordFilter& filter, const SamplingOptions& options,
                                   int64_t max_draws)
    : rows_(&rows),
      expander_(&expander),
      filter_(&filter),
      scorer_(&rows.scorer()),
      random_(options.seed, Purpose::sampling),
      power_(1 / options.temperature),
      root_size_(scorer_->shortlist() + scorer_->clusters()),
      log_weights_(arena.take<float>(max_draws * root_size_, "sampling weights")),
      trials_(arena.take<Trial>(max_draws, "sampling weights")),
      pending_(arena.take<int32_t>(max_draws, "sampling weights")),
      scratch_(arena.take<double>(scratch_row(*scorer_) * rows.pool().threads(), "sampling weights")),
      scratch_size_(scratch_row(*scorer_)) {}

std::span<float> AncestralSampler::log_weights(size_t draw) const {
  return log_weights_.subspan(draw * static_cast<size_t>(root_size_), static_cast<size_t>(root_size_));
}

void AncestralSampler::run(std::span<WordDraw> draws) {
  possible_ += static_cast<int64_t>(draws.size()) * scorer_->clusters();
  rows_->pool().run(static_cast<int64_t>(draws.size()), [&](int64_t i, int) {
    const auto index = static_cast<size_t>(i);
    trials_[index] = {0, -1};
    prepare(draws[index], log_weights(index), rows_->root(draws[index].row));
  });
  auto pending = pending_.first(draws.size());
  std::iota(pending.begin(), pending.end(), 0);
  const auto shortlist = static_cast<int32_t>(scorer_->shortlist());
  while (!pending.empty()) {
    rows_->pool().run(static_cast<int64_t>(pending.size()), [&](int64_t i, int worker) {
      const auto index = static_cast<size_t>(pending[static_cast<size_t>(i)]);
      propose(index, draws[index], worker);
    });
    expander_->clear();
    for (const int32_t index : pending) {
      const int32_t column = trials_[static_cast<size_t>(index)].column;
      WordDraw& draw = draws[static_cast<size_t>(index)];
      if (column < 0) continue;
      const double root = double{rows_->root(draw.row)[static_cast<size_t>(column)]};
      if (column < shortlist) {
        draw.word = scorer_->shortlist_words()[static_cast<size_t>(column)];
        draw.log_prob = root;
        continue;
      }
      const int32_t cluster = column - shortlist;
      if (const auto words = scorer_->cluster_words(cluster); words.size() == 1) {
        draw.word = words[0];
        draw.log_prob = root;
        continue;
      }
      if (expander_->full()) settle(draws);
      expander_->add({cluster, static_cast<int32_t>(draw.row), index, 0});
    }
    settle(draws);
    const auto end = std::remove_if(pending.begin(), pending.end(), [&](int32_t index) {
      return draws[static_cast<size_t>(index)].word != kNoWord ||
             trials_[static_cast<size_t>(index)].column < 0;
    });
    pending = pending.first(static_cast<size_t>(end - pending.begin()));
  }
}

// Logarithms of the bounds of all columns.
void AncestralSampler::prepare(const WordDraw& draw, std::span<float> log_weights,
                               std::span<const float> root) const {
  const auto shortlist = scorer_->shortlist_words();
  const int32_t end = scorer_->end_of_sentence();
  const double slack = std::max(0.0, 1 - power_);
  for (size_t column = 0; column < root.size(); ++column) {
    double log_weight = power_ * double{root[column]};
    if (column < shortlist.size()) {
      if (!allowed(*filter_, draw, shortlist[column], end)) log_weight = kNever;
    } else {
      const auto words = scorer_->cluster_words(static_cast<int64_t>(column - shortlist.size()));
      if (words.size() == 1 && !allowed(*filter_, draw, words[0], end)) log_weight = kNever;
      if (slack > 0) log_weight += slack * std::log(static_cast<double>(words.size()));
    }
    log_weights[column] = static_cast<float>(log_weight);
  }
}

void AncestralSampler::propose(size_t index, const WordDraw& draw, int worker) {
  const auto log_weights = this->log_weights(index);
  const auto weights = scratch_.subspan(static_cast<size_t>(worker * scratch_size_), log_weights.size());
  std::copy(log_weights.begin(), log_weights.end(), weights.begin());
  Trial& trial = trials_[index];
  const auto proposal = 2 * static_cast<uint64_t>(trial.count++);
  const bool none = std::isinf(exponentiate(weights));
  trial.column = none ? -1 : static_cast<int32_t>(pick(weights, uniforms(random_, draw, proposal).first));
}

void AncestralSampler::settle(std::span<WordDraw> draws) {
  if (expander_->empty()) return;
  expander_->run(*rows_);
  for (size_t i = 0; i < expander_->items().size(); ++i) {
    const Expansion& item = expander_->items()[i];
    settle(draws[static_cast<size_t>(item.owner)], item, expander_->leaves(static_cast<int64_t>(i)));
  }
  expander_->clear();
}

// Accepts the proposed cluster and draws a leaf, or corrects the cluster's weight.
void AncestralSampler::settle(WordDraw& draw, const Expansion& item, std::span<const float> leaves) {
  const auto words = scorer_->cluster_words(item.cluster);
  const auto weights = scratch_.first(leaves.size());
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    const bool possible = allowed(*filter_, draw, words[leaf], scorer_->end_of_sentence());
    weights[leaf] = possible ? power_ * double{leaves[leaf]} : double{kNever};
  }
  const double log_mass = exponentiate(weights);
  const auto column = static_cast<size_t>(scorer_->shortlist() + item.cluster);
  const double root = double{rows_->root(draw.row)[column]};
  float& log_weight = log_weights(static_cast<size_t>(item.owner))[column];
  const double log_acceptance = power_ * root + log_mass - double{log_weight};
  const auto proposal = 2 * static_cast<uint64_t>(trials_[static_cast<size_t>(item.owner)].count - 1);
  if (!(std::log(uniforms(random_, draw, proposal).second) < log_acceptance)) {
    log_weight = static_cast<float>(power_ * root + log_mass);
    return;
  }
  const size_t leaf = pick(weights, uniforms(random_, draw, proposal + 1).first);
  draw.word = words[leaf];
  draw.log_prob = root + double{leaves[leaf]};
}

}  // namespace hsm
