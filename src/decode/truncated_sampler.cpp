#include "decode/truncated_sampler.h"

#include <algorithm>
#include <cmath>

namespace hsm {
namespace {

// Words asked for first when the probability, not a number, says how many are needed.
constexpr int64_t kFirstAsk = 64;

int64_t largest_set(const SamplingOptions& options, const Scorer& scorer) {
  return options.top_k > 0 ? std::min(options.top_k, scorer.words()) : scorer.words();
}

int64_t first_ask(const SamplingOptions& options, const Scorer& scorer) {
  const int64_t limit = largest_set(options, scorer);
  return options.top_p < 1 ? std::min(limit, kFirstAsk) : limit;
}

}  // namespace

TruncatedSampler::TruncatedSampler(Arena& arena, const Scorer& scorer, const SamplingOptions& options,
                                   const WordFilter& filter, int64_t max_rows)
    : scorer_(&scorer),
      options_(options),
      random_(options.seed, Purpose::sampling),
      limit_(largest_set(options, scorer)),
      ask_(first_ask(options, scorer)),
      search_(arena, scorer, max_rows, 1),
      memory_(arena.take<Candidate>(max_rows * (ask_ + 1), "candidates")),
      large_(arena.take<Candidate>(limit_ > ask_ ? limit_ + 1 : 0, "candidates")),
      rows_(arena, max_rows, "samples"),
      queries_(arena, max_rows, "candidates") {
  if (arena.measuring()) return;
  for (int32_t cluster = 0; cluster < scorer.clusters(); ++cluster) {
    const auto words = scorer.cluster_words(cluster);
    const bool concerned = std::any_of(words.begin(), words.end(), [&](int32_t word) {
      return !filter.allows(word) || word == scorer.end_of_sentence();
    });
    if (words.size() > 1 && concerned) blocked_clusters_.push_back(cluster);
  }
}

void TruncatedSampler::run(std::span<WordDraw> draws, const RowBatch& rows, Expander& expander,
                           const WordFilter& filter) {
  group(draws);
  if (options_.top_p < 1) subtract_blocked(rows, expander, filter);
  const auto stride = static_cast<size_t>(ask_ + 1);
  queries_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    queries_.push_back(query_for_row(rows_.all()[i].draws[0].row, memory_.subspan(i * stride, stride)));
    queries_.back().end_allowed = rows_.all()[i].draws[0].end_allowed;
  }
  search_.run(queries_.all(), rows, expander, filter);
  for (size_t i = 0; i < rows_.size(); ++i) {
    const auto ranked = rank_with_end(queries_.all()[i], memory_.subspan(i * stride, stride));
    const auto set = cut(rows_.all()[i], ranked, ask_);
    if (set.empty() && !ranked.empty()) {
      draw_from_more(rows_.all()[i], rows, expander, filter);
    } else {
      draw(rows_.all()[i], set);
    }
  }
}

void TruncatedSampler::group(std::span<WordDraw> draws) {
  rows_.clear();
  for (size_t i = 0; i < draws.size(); ++i) {
    if (i > 0 && draws[i].row == draws[i - 1].row) {
      Row& row = rows_.back();
      row.draws = {row.draws.data(), row.draws.size() + 1};
    } else {
      rows_.push_back({draws.subspan(i, 1), 1});
    }
  }
}

bool TruncatedSampler::blocked(const Row& row, int32_t word, const WordFilter& filter) const {
  return !filter.allows(word) || (word == scorer_->end_of_sentence() && !row.draws[0].end_allowed);
}

void TruncatedSampler::subtract_blocked(const RowBatch& rows, Expander& expander, const WordFilter& filter) {
  const auto shortlist = scorer_->shortlist_words();
  for (Row& row : rows_.all()) {
    const auto root = rows.root(row.draws[0].row);
    for (size_t column = 0; column < shortlist.size(); ++column) {
      if (blocked(row, shortlist[column], filter)) row.allowed_mass -= std::exp(double{root[column]});
    }
    for (int64_t cluster = 0; cluster < scorer_->clusters(); ++cluster) {
      const auto words = scorer_->cluster_words(cluster);
      if (words.size() != 1 || !blocked(row, words[0], filter)) continue;
      row.allowed_mass -= std::exp(double{root[shortlist.size() + static_cast<size_t>(cluster)]});
    }
  }
  expander.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    for (const int32_t cluster : blocked_clusters_) {
      if (expander.full()) subtract_blocked_leaves(rows, expander, filter);
      expander.add({cluster, static_cast<int32_t>(rows_.all()[i].draws[0].row), static_cast<int32_t>(i), 0});
    }
  }
  subtract_blocked_leaves(rows, expander, filter);
}

void TruncatedSampler::subtract_blocked_leaves(const RowBatch& rows, Expander& expander,
                                               const WordFilter& filter) {
  if (expander.empty()) return;
  expander.run(rows);
  for (size_t i = 0; i < expander.items().size(); ++i) {
    const Expansion& item = expander.items()[i];
    Row& row = rows_.all()[static_cast<size_t>(item.owner)];
    const double root = double{rows.root(item.row)[static_cast<size_t>(scorer_->shortlist() + item.cluster)]};
    const auto words = scorer_->cluster_words(item.cluster);
    const auto leaves = expander.leaves(static_cast<int64_t>(i));
    for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
      if (blocked(row, words[leaf], filter)) row.allowed_mass -= std::exp(root + double{leaves[leaf]});
    }
  }
  expander.clear();
}

std::span<const Candidate> TruncatedSampler::cut(const Row& row, std::span<const Candidate> ranked,
                                                 int64_t asked) const {
  ranked = ranked.first(std::min(ranked.size(), static_cast<size_t>(asked)));
  if (options_.top_p >= 1) return ranked;
  double mass = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    mass += std::exp(ranked[i].score);
    if (mass >= options_.top_p * row.allowed_mass) return ranked.first(i + 1);
  }
  const bool all = asked == limit_ || static_cast<int64_t>(ranked.size()) < asked;
  return all ? ranked : std::span<const Candidate>{};
}

void TruncatedSampler::draw_from_more(const Row& row, const RowBatch& rows, Expander& expander,
                                      const WordFilter& filter) {
  for (int64_t asked = ask_; asked < limit_;) {
    asked = std::min(4 * asked, limit_);
    const auto memory = large_.first(static_cast<size_t>(asked + 1));
    CandidateQuery query = query_for_row(row.draws[0].row, memory);
    query.end_allowed = row.draws[0].end_allowed;
    search_.run({&query, 1}, rows, expander, filter);
    const auto set = cut(row, rank_with_end(query, memory), asked);
    if (set.empty()) continue;
    draw(row, set);
    return;
  }
}

void TruncatedSampler::draw(const Row& row, std::span<const Candidate> set) const {
  if (set.empty()) return;
  const auto weight = [&](const Candidate& candidate) {
    return std::exp((candidate.score - set[0].score) / options_.temperature);
  };
  double total = 0;
  for (const Candidate& candidate : set) total += weight(candidate);
  for (WordDraw& draw : row.draws) {
    double left = uniforms(random_, draw, 0).first * total;
    const Candidate* drawn = &set[0];
    for (const Candidate& candidate : set) {
      const double share = weight(candidate);
      if (share > 0) drawn = &candidate;
      if (left < share) break;
      left -= share;
    }
    draw.word = drawn->word;
    draw.log_prob = drawn->score;
  }
}

}  // namespace hsm
