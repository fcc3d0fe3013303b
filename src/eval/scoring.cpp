#include "eval/scoring.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <span>
#include <vector>

#include "eval/token_scorer.h"

namespace hsm {
namespace {

constexpr int64_t kWindow = int64_t{1} << 15;  // words read, scored and added up at a time

double average(double log_prob, int64_t count) {
  if (count == 0) return std::numeric_limits<double>::quiet_NaN();
  return std::min(std::exp(-log_prob / static_cast<double>(count)), std::numeric_limits<double>::max());
}

/// A token file in windows.
class CorpusScorer {
 public:
  CorpusScorer(TextScorer& scorer, const Vocabulary& vocabulary, const TokenFile& tokens, int64_t most)
      : end_of_sentence_(vocabulary.end_of_sentence()),
        tokens_(tokens),
        size_(std::min(tokens.size(), most)),
        scorer_(scorer),
        sum_(vocabulary.end_of_sentence(), vocabulary.unknown()) {}

  CorpusScore stream() {
    StreamState state = scorer_.start();
    while (!at_end()) {
      read_window();
      score_as_stream(state);
    }
    return sums();
  }

  CorpusScore sentences() {
    while (!at_end()) {
      read_window();
      find_sentences();
      if (lengths_.empty()) {
        score_long_sentence();
      } else {
        scorer_.score_sentences(words_, lengths_, scores_);
        take();
      }
    }
    return sums();
  }

 private:
  [[nodiscard]] CorpusScore sums() const {
    CorpusScore sums = sum_.corpus();
    if (sum_.sentence().sentences == 0) sums += sum_.sentence();  // what the limit left of a sentence
    return sums;
  }

  [[nodiscard]] bool at_end() const { return first_ >= size_; }

  void read_window() {
    words_.resize(static_cast<size_t>(std::min(kWindow, size_ - first_)));
    tokens_.read(first_, words_);
    scores_.resize(words_.size());
  }

  /// Keeps the whole sentences of the window; none when the first is longer than that.
  void find_sentences() {
    lengths_.clear();
    size_t first = 0;
    for (size_t place = 0; place < words_.size(); ++place) {
      if (words_[place] != end_of_sentence_) continue;
      lengths_.push_back(static_cast<int64_t>(place + 1 - first));
      first = place + 1;
    }
    if (!lengths_.empty()) words_.resize(first);
  }

  void score_long_sentence() {
    StreamState state = scorer_.start();
    while (true) {
      const auto end = std::find(words_.begin(), words_.end(), end_of_sentence_);
      const bool last = end != words_.end();
      if (last) words_.erase(end + 1, words_.end());
      score_as_stream(state);
      if (last || at_end()) return;
      read_window();
    }
  }

  void score_as_stream(StreamState& state) {
    scorer_.score_stream(words_, state, scores_);
    take();
  }

  void take() {
    for (size_t place = 0; place < words_.size(); ++place) sum_.add(words_[place], scores_[place]);
    first_ += static_cast<int64_t>(words_.size());
  }

  int32_t end_of_sentence_;
  const TokenFile& tokens_;
  int64_t size_;
  TextScorer& scorer_;
  ScoreSum sum_;
  int64_t first_ = 0;
  std::vector<int32_t> words_;
  std::vector<int64_t> lengths_;
  std::vector<TokenScore> scores_;
};

}  // namespace

double CorpusScore::perplexity() const {
  return average(log_prob, words);
}

double CorpusScore::perplexity_without_oov() const {
  return average(log_prob - log_prob_oov, words - oov);
}

double CorpusScore::perplexity_per_word() const {
  return average(log_prob, words - sentences);
}

CorpusScore& CorpusScore::operator+=(const CorpusScore& other) {
  sentences += other.sentences;
  words += other.words;
  oov += other.oov;
  malformed += other.malformed;
  log_prob += other.log_prob;
  log_prob_root += other.log_prob_root;
  log_prob_oov += other.log_prob_oov;
  return *this;
}

bool ScoreSum::add(int32_t word, const TokenScore& score) {
  if (sentence_.sentences == 1) sentence_ = {};
  const double log_prob = score.log_prob();
  ++sentence_.words;
  sentence_.log_prob += log_prob;
  sentence_.log_prob_root += static_cast<double>(score.root);
  if (word == unknown_) {
    ++sentence_.oov;
    sentence_.log_prob_oov += log_prob;
  }
  if (word != end_of_sentence_) return false;
  sentence_.sentences = 1;
  corpus_ += sentence_;
  return true;
}

CorpusScore score_corpus(TextScorer& scorer, const Vocabulary& vocabulary, const TokenFile& tokens,
                         Context context, int64_t most) {
  CorpusScorer corpus(scorer, vocabulary, tokens, most);
  return context == Context::stream ? corpus.stream() : corpus.sentences();
}

CorpusScore score_corpus(const InferenceModel& model, const Vocabulary& vocabulary, const TokenFile& tokens,
                         Context context, ThreadPool& pool) {
  TokenScorer scorer(model, vocabulary.end_of_sentence(), pool);
  return score_corpus(scorer, vocabulary, tokens, context);
}

}  // namespace hsm
