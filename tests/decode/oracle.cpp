#include "decode/oracle.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <ostream>
#include <tuple>

#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

constexpr double kImpossible = -std::numeric_limits<double>::infinity();

double normalised(double log_prob, size_t length, double alpha) {
  return alpha == 0 ? log_prob : log_prob / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha);
}

History after(const Scorer& scorer, const std::vector<int32_t>& prompt) {
  History history(scorer);
  history.feed(scorer.end_of_sentence());
  for (const int32_t token : prompt) history.feed(token);
  return history;
}

bool possible(const Scorer& scorer, const BeamOptions& options, const Allowed& allowed, int32_t word,
              double log_prob, size_t length) {
  if (log_prob == kImpossible || (allowed && !allowed(word))) return false;
  return word != scorer.end_of_sentence() || static_cast<int64_t>(length) >= options.length.min_length;
}

struct Beam {
  std::vector<int32_t> tokens;
  double log_prob = 0;
  History history;
};

}  // namespace

std::ostream& operator<<(std::ostream& out, const Output& output) {
  for (const int32_t token : output.tokens) out << token << ' ';
  return out << (output.finished ? "(ended) " : "(cut) ") << output.log_prob << " / " << output.score;
}

std::vector<Output> dense_beam_search(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                      const BeamOptions& options, const Allowed& allowed) {
  const auto beam = static_cast<size_t>(options.beam);
  const auto max_length = static_cast<size_t>(options.length.max_length);
  std::vector<Output> complete;
  const auto add = [&](const std::vector<int32_t>& tokens, double log_prob, bool ended) {
    complete.push_back(
        {tokens, log_prob, normalised(log_prob, tokens.size(), options.length.length_penalty), ended});
  };
  std::vector<Beam> live{{{}, 0, after(scorer, prompt)}};
  if (max_length == 0) add({}, 0, false);
  for (size_t length = 0; length < max_length && !live.empty(); ++length) {
    std::vector<std::tuple<double, int32_t, size_t>> ranking;  // negative score, word, parent: ascending
    for (size_t parent = 0; parent < live.size(); ++parent) {
      const auto log_probs = live[parent].history.word_log_probs();
      for (int32_t word = 0; word < scorer.words(); ++word) {
        const double score = live[parent].log_prob + log_probs[static_cast<size_t>(word)];
        if (possible(scorer, options, allowed, word, score, length))
          ranking.emplace_back(-score, word, parent);
      }
    }
    std::sort(ranking.begin(), ranking.end());
    std::vector<Beam> next;
    for (size_t rank = 0; rank < ranking.size(); ++rank) {
      const auto [negative, word, parent] = ranking[rank];
      auto tokens = live[parent].tokens;
      tokens.push_back(word);
      if (word == scorer.end_of_sentence()) {
        if (rank < beam) add(tokens, -negative, true);
      } else if (next.size() < beam) {
        if (length + 1 == max_length) add(tokens, -negative, false);
        next.push_back({tokens, -negative, live[parent].history});
        next.back().history.feed(word);
      }
    }
    live = std::move(next);
  }
  std::stable_sort(complete.begin(), complete.end(),
                   [](const Output& a, const Output& b) { return a.score > b.score; });
  if (complete.size() > static_cast<size_t>(options.nbest)) {
    complete.resize(static_cast<size_t>(options.nbest));
  }
  return complete;
}

namespace {

struct Enumeration {
  const Scorer& scorer;
  const BeamOptions& options;
  const Allowed& allowed;
  std::vector<Output> found;
  std::vector<std::vector<double>> partial;  // log-probability after each token of an output

  void extend(const History& history, std::vector<int32_t>& tokens, std::vector<double>& sums) {
    const double log_prob = sums.empty() ? 0.0 : sums.back();
    const bool ended = !tokens.empty() && tokens.back() == scorer.end_of_sentence();
    if (ended || static_cast<int64_t>(tokens.size()) == options.length.max_length) {
      found.push_back(
          {tokens, log_prob, normalised(log_prob, tokens.size(), options.length.length_penalty), ended});
      partial.push_back(sums);
      return;
    }
    const auto log_probs = history.word_log_probs();
    for (int32_t word = 0; word < scorer.words(); ++word) {
      const double sum = log_prob + log_probs[static_cast<size_t>(word)];
      if (!possible(scorer, options, allowed, word, sum, tokens.size())) continue;
      History next = history;
      next.feed(word);
      tokens.push_back(word);
      sums.push_back(sum);
      extend(next, tokens, sums);
      tokens.pop_back();
      sums.pop_back();
    }
  }

  // The order of ties: the shorter, then by the last step's order: score, token, then the parents' order.
  bool before(size_t a, size_t b) const {
    if (found[a].score != found[b].score) return found[a].score > found[b].score;
    if (found[a].tokens.size() != found[b].tokens.size())
      return found[a].tokens.size() < found[b].tokens.size();
    for (size_t step = found[a].tokens.size(); step-- > 0;) {
      if (partial[a][step] != partial[b][step]) return partial[a][step] > partial[b][step];
      if (found[a].tokens[step] != found[b].tokens[step])
        return found[a].tokens[step] < found[b].tokens[step];
    }
    return false;
  }
};

}  // namespace

std::vector<Output> exhaustive_search(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                      const BeamOptions& options, const Allowed& allowed) {
  Enumeration all{scorer, options, allowed, {}, {}};
  std::vector<int32_t> tokens;
  std::vector<double> sums;
  all.extend(after(scorer, prompt), tokens, sums);
  std::vector<size_t> order(all.found.size());
  for (size_t i = 0; i < order.size(); ++i) order[i] = i;
  std::sort(order.begin(), order.end(), [&](size_t a, size_t b) { return all.before(a, b); });
  std::vector<Output> best;
  for (const size_t index : order) {
    if (static_cast<int64_t>(best.size()) == options.nbest) break;
    best.push_back(all.found[index]);
  }
  return best;
}

std::vector<double> token_log_probs(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                    const std::vector<int32_t>& tokens) {
  History history = after(scorer, prompt);
  std::vector<double> result;
  for (const int32_t token : tokens) {
    result.push_back(history.word_log_probs()[static_cast<size_t>(token)]);
    history.feed(token);
  }
  return result;
}

}  // namespace hsm::testing
