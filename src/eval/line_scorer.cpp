#include "eval/line_scorer.h"

#include <cmath>
#include <exception>

#include "base/error.h"
#include "base/utf8.h"

namespace hsm {
namespace {

constexpr size_t kWindowLines = 8192;  // of a window of (nearly) empty lines

[[noreturn]] void fail_not_finite(std::string_view name, int64_t line, std::string_view word) {
  throw DataError(std::string(name) + ":" + std::to_string(line) + ": the log-probability of " + quote(word) +
                  " is not finite: the model's weights are damaged or its training diverged");
}

}  // namespace

LineScorer::LineScorer(TextScorer& scorer, const Vocabulary& vocabulary, const LineOptions& options)
    : vocabulary_(&vocabulary), options_(options), scorer_(&scorer) {}

CorpusScore LineScorer::score(LineReader& reader, const Sink& sink,
                              const std::function<void()>& before_reading) {
  ScoreSum sum(vocabulary_->end_of_sentence(), vocabulary_->unknown());
  StreamState state = scorer_->start();
  malformed_ = 0;
  for (bool more = true; more;) {
    if (before_reading) before_reading();
    std::exception_ptr malformed;
    try {
      more = read_window(reader);
    } catch (const DataError&) {
      malformed = std::current_exception();
    }
    score_window(state);
    hand_over(sum, reader.name(), sink);
    if (malformed) std::rethrow_exception(malformed);
  }
  CorpusScore total = sum.corpus();
  total.malformed = malformed_;
  return total;
}

/// False when the text is at its end; what was read before that is in the window.
bool LineScorer::read_window(LineReader& reader) {
  lengths_.clear();
  words_.clear();
  ids_.clear();
  do {
    if (!read_line(reader)) return false;
  } while (static_cast<int64_t>(ids_.size()) < options_.window_words && lengths_.size() < kWindowLines &&
           reader.line_ready());
  return true;
}

bool LineScorer::read_line(LineReader& reader) {
  if (lines_.size() == lengths_.size()) lines_.emplace_back();
  Line& line = lines_[lengths_.size()];
  if (!reader.next(line.text)) return false;
  line.number = reader.line_number();
  if (!split(line, reader.name())) {
    lengths_.push_back(0);
    return true;
  }
  if (split_.empty() && options_.skip_blank_lines) return true;
  for (const std::string_view word : split_) {
    words_.push_back(word);
    ids_.push_back(vocabulary_->id_or_unknown(word));
  }
  ids_.push_back(vocabulary_->end_of_sentence());
  lengths_.push_back(static_cast<int64_t>(split_.size()) + 1);
  return true;
}

/// False for a malformed line that is to be reported.
bool LineScorer::split(Line& line, const std::string& name) {
  line.error.clear();
  try {
    split_line(line.text, options_.text, name, line.number, split_);
  } catch (const DataError& error) {
    if (options_.bad_lines == BadLines::error) throw;
    line.error = error.what();
  }
  return line.error.empty();
}

void LineScorer::score_window(StreamState& state) {
  scores_.resize(ids_.size());
  if (options_.context == Context::stream) {
    scorer_->score_stream(ids_, state, scores_);
  } else {
    scorer_->score_sentences(ids_, lengths_, scores_);
  }
}

void LineScorer::hand_over(ScoreSum& sum, std::string_view name, const Sink& sink) {
  size_t first = 0;
  size_t first_word = 0;
  for (size_t index = 0; index < lengths_.size(); ++index) {
    const auto length = static_cast<size_t>(lengths_[index]);
    ScoredLine line;
    line.unknown = vocabulary_->unknown();
    line.number = lines_[index].number;
    if (length == 0) {
      line.error = lines_[index].error;
      ++malformed_;
      sink(line);
      continue;
    }
    line.words = std::span(words_).subspan(first_word, length - 1);
    line.ids = std::span(ids_).subspan(first, length);
    line.scores = std::span(scores_).subspan(first, length);
    for (size_t place = 0; place < length; ++place) {
      if (!std::isfinite(line.scores[place].log_prob())) {
        fail_not_finite(name, line.number, line.text_of(place));
      }
      sum.add(line.ids[place], line.scores[place]);
    }
    line.sums = sum.sentence();
    sink(line);
    first += length;
    first_word += length - 1;
  }
}

}  // namespace hsm
