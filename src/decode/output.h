#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>

#include "decode/result.h"
#include "text/vocabulary.h"

namespace hsm {

enum class OutputFormat { text, jsonl, moses };

struct OutputOptions {
  OutputFormat format = OutputFormat::text;
  bool scores = false;    ///< text: columns with log-probability and score
  bool numbered = false;  ///< text: a column with the number of the input line, for blocks of several lines
  bool networks = false;  ///< inputs are confusion networks: scores have a third column, the channel's
};

/// Takes finished text, a piece at a time; `block_complete` says that it ends an input's block.
using WriteText = std::function<void(std::string_view text, bool block_complete)>;

/// Turns results into text, a block for each input (docs/decoding.md has the formats):
///   text   a hypothesis a line, or a word and its probability, columns separated by tabs
///   jsonl  an object a line
///   moses  "number ||| words ||| logprob= l ||| score", numbers from 0
/// Long blocks are handed on piece by piece, so memory doesn't grow with them.
class ResultWriter : public ResultSink {
 public:
  ResultWriter(const Vocabulary& vocabulary, const OutputOptions& options, WriteText write);

 protected:
  /// Appends the words of a hypothesis, without the end symbol; `append_word` writes each.
  template <class AppendWord>
  void append_words(const Hypothesis& hypothesis, const AppendWord& append_word) {
    const size_t count = hypothesis.tokens.size() - (hypothesis.finished ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
      if (i > 0) append(' ');
      append_word(word(hypothesis.tokens[i]));
      pass_on_when_large();
    }
  }
  /// Appends the text of a path; `append_text` writes each alternative's.
  template <class AppendText>
  void append_path(const Prompt& prompt, const NetworkPath& path, const AppendText& append_text) {
    bool first = true;
    for (size_t position = 0; position < path.choices.size(); ++position) {
      const auto& alternatives = prompt.network.positions[position];
      const std::string& text = alternatives[static_cast<size_t>(path.choices[position])].text;
      if (text.empty()) continue;
      if (!first) append(' ');
      first = false;
      append_text(text);
      pass_on_when_large();
    }
  }
  void append(std::string_view text) { buffer_ += text; }
  void append(char character) { buffer_ += character; }
  /// The shortest decimal that reads back as the same number.
  void append_number(double value);
  void append_number(int64_t value);
  /// What stands between the quotes of a JSON string.
  void append_escaped(std::string_view text);
  /// Hands a piece on when enough has come together.
  void pass_on_when_large();
  void end_block();

  [[nodiscard]] const std::string& word(int32_t id) const { return vocabulary_->word(id); }
  [[nodiscard]] const OutputOptions& options() const noexcept { return options_; }

 private:
  const Vocabulary* vocabulary_;
  OutputOptions options_;
  WriteText write_;
  std::string buffer_;
};

/// The vocabulary must outlive the writer.
std::unique_ptr<ResultSink> make_result_writer(const Vocabulary& vocabulary, const OutputOptions& options,
                                               WriteText write);

}  // namespace hsm
