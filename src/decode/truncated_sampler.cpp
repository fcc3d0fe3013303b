#include "decode/truncated_sampler.h"

#include <algorithm>
#include <cmath>

namespace hsm {
namespace {

// Words asked for first when the probability, not a number, says how many are needed.
constexpr int64_t kFirstAsk = 64;

int64_t largest_set(const SamplingOptions& options, int64_t words) {
  return options.top_k > 0 ? std::min(options.top_k, words) : words;
}

int64_t first_ask(const SamplingOptions& options, int64_t words) {
  const int64_t limit = largest_set(options, words);
  return options.top_p < 1 ? std::min(limit, kFirstAsk) : limit;
}

}  // namespace

TruncatedSampler::TruncatedSampler(Arena& arena, RowEngine& engine, const SamplingOptions& options,
                                   int64_t max_rows)
    : options_(options),
      random_(options.seed, Purpose::sampling),
      limit_(largest_set(options, engine.words())),
      ask_(first_ask(options, engine.words())),
      search_(engine.make_word_search(max_rows, 1, limit_)),
      allowed_mass_(options.top_p < 1 ? engine.make_allowed_mass() : nullptr),
      memory_(arena.take<Candidate>(max_rows * (ask_ + 1), "candidates")),
      large_(arena.take<Candidate>(limit_ > ask_ ? limit_ + 1 : 0, "candidates")),
      rows_(arena, max_rows, "samples"),
      masses_(arena, options.top_p < 1 ? max_rows : 0, "samples"),
      queries_(arena, max_rows, "candidates") {}

void TruncatedSampler::run(std::span<WordDraw> draws) {
  group(draws);
  if (allowed_mass_ != nullptr) allowed_mass_->run(masses_.all());
  const auto stride = static_cast<size_t>(ask_ + 1);
  queries_.clear();
  for (size_t i = 0; i < rows_.size(); ++i) {
    const WordDraw& first = rows_.all()[i][0];
    queries_.push_back(query_for_row(first.row, memory_.subspan(i * stride, stride)));
    queries_.back().end_allowed = first.end_allowed;
  }
  search_->run(queries_.all());
  for (size_t i = 0; i < rows_.size(); ++i) {
    const double mass = allowed_mass_ != nullptr ? masses_.all()[i].mass : 1;
    const auto ranked = rank_with_end(queries_.all()[i], memory_.subspan(i * stride, stride));
    const auto set = cut(mass, ranked, ask_);
    if (set.empty() && !ranked.empty()) {
      draw_from_more(rows_.all()[i], mass);
    } else {
      draw(rows_.all()[i], set);
    }
  }
}

void TruncatedSampler::group(std::span<WordDraw> draws) {
  rows_.clear();
  masses_.clear();
  for (size_t i = 0; i < draws.size(); ++i) {
    if (i > 0 && draws[i].row == draws[i - 1].row) {
      rows_.back() = {rows_.back().data(), rows_.back().size() + 1};
      continue;
    }
    rows_.push_back(draws.subspan(i, 1));
    if (allowed_mass_ != nullptr) masses_.push_back({draws[i].row, draws[i].end_allowed});
  }
}

std::span<const Candidate> TruncatedSampler::cut(double mass, std::span<const Candidate> ranked,
                                                 int64_t asked) const {
  ranked = ranked.first(std::min(ranked.size(), static_cast<size_t>(asked)));
  if (options_.top_p >= 1) return ranked;
  double sum = 0;
  for (size_t i = 0; i < ranked.size(); ++i) {
    sum += std::exp(ranked[i].score);
    if (sum >= options_.top_p * mass) return ranked.first(i + 1);
  }
  const bool all = asked == limit_ || static_cast<int64_t>(ranked.size()) < asked;
  return all ? ranked : std::span<const Candidate>{};
}

void TruncatedSampler::draw_from_more(Draws draws, double mass) {
  for (int64_t asked = ask_; asked < limit_;) {
    asked = std::min(4 * asked, limit_);
    const auto memory = large_.first(static_cast<size_t>(asked + 1));
    CandidateQuery query = query_for_row(draws[0].row, memory);
    query.end_allowed = draws[0].end_allowed;
    search_->run({&query, 1});
    const auto set = cut(mass, rank_with_end(query, memory), asked);
    if (set.empty()) continue;
    draw(draws, set);
    return;
  }
}

void TruncatedSampler::draw(Draws draws, std::span<const Candidate> set) const {
  if (set.empty()) return;
  const auto weight = [&](const Candidate& candidate) {
    return std::exp((candidate.score - set[0].score) / options_.temperature);
  };
  double total = 0;
  for (const Candidate& candidate : set) total += weight(candidate);
  for (WordDraw& draw : draws) {
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
