#pragma once
#include <cstdint>
#include <deque>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "eval/scoring.h"
#include "eval/text_scorer.h"
#include "text/lines.h"

namespace hsm {

struct LineOptions {
  Context context = Context::stream;
  TextOptions text;
  bool skip_blank_lines = false;
  BadLines bad_lines = BadLines::error;
  int64_t window_words = int64_t{1} << 15;  ///< read and scored at a time, for speed; at least one line
};

/// A line and its scores; valid during the call that hands it over.
struct ScoredLine {
  int64_t number = 0;                       ///< in its file, from 1
  std::span<const std::string_view> words;  ///< as in the text, after lower-casing; without `</s>`
  std::span<const int32_t> ids;             ///< what the model reads: one a word, then `</s>`
  std::span<const TokenScore> scores;       ///< one an id
  CorpusScore sums;                         ///< of this line
  int32_t unknown = 0;                      ///< the id of `<unk>`
  std::string_view error;                   ///< what is wrong with a malformed line, which has no scores

  /// The word at a place of ids and scores; `</s>` at the last.
  [[nodiscard]] std::string_view text_of(size_t place) const {
    return place < words.size() ? words[place] : kEndOfSentence;
  }
  /// Predicted as `<unk>`: not in the vocabulary, or a literal `<unk>`.
  [[nodiscard]] bool is_oov(size_t place) const { return ids[place] == unknown; }
};

/// Scores text line by line. Lines that have already arrived are scored together, but none waits for one that
/// hasn't.
class LineScorer {
 public:
  using Sink = std::function<void(const ScoredLine&)>;

  /// Scorer and vocabulary must outlive the object.
  LineScorer(TextScorer& scorer, const Vocabulary& vocabulary, const LineOptions& options);

  /// Scores all lines that are left in `reader`, starting from zero state, hands each to `sink` in order, and
  /// returns their sums. `before_reading` is called before each wait for more text: the time to flush.
  /// DataError for malformed text, after the lines before it were handed over (unless such lines are
  /// reported: they add nothing to the sums and the context), and for a log-probability that isn't finite.
  CorpusScore score(LineReader& reader, const Sink& sink, const std::function<void()>& before_reading = {});

 private:
  struct Line {
    std::string text;
    int64_t number = 0;
    std::string error;
  };

  bool read_window(LineReader& reader);
  bool read_line(LineReader& reader);
  bool split(Line& line, const std::string& name);
  void score_window(StreamState& state);
  void hand_over(ScoreSum& sum, std::string_view name, const Sink& sink);

  const Vocabulary* vocabulary_;
  LineOptions options_;
  TextScorer* scorer_;
  int64_t malformed_ = 0;         // lines of this text
  std::deque<Line> lines_;        // the first lengths_.size() are in use; a deque, as words_ points into them
  std::vector<int64_t> lengths_;  // ids of each line; 0 for a malformed one
  std::vector<std::string_view> split_;
  std::vector<std::string_view> words_;  // of all lines of the window
  std::vector<int32_t> ids_;
  std::vector<TokenScore> scores_;
};

}  // namespace hsm
