#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "decode/prompt.h"
#include "text/lines.h"
#include "text/vocabulary.h"

namespace hsm {

/// Makes tokens and unknown words of prompt.text. DataError with NAME and the prompt's line.
void split_prompt(Prompt& prompt, const TextOptions& options, const Vocabulary& vocabulary,
                  std::string_view name);

/// Runs `read`, which makes a prompt of a line; a DataError becomes the prompt's error when bad lines are
/// reported.
template <class Read>
void take_line(Prompt& prompt, BadLines bad_lines, const Read& read) {
  prompt.error.clear();
  try {
    read();
  } catch (const DataError& error) {
    if (bad_lines == BadLines::error) throw;
    prompt.error = error.what();
  }
}

/// Prompts from a file or standard input, one a line. Never waits for a line while others are in work, so
/// that someone who types gets each answer before the next line.
class PromptReader : public PromptFeed {
 public:
  /// The vocabulary must outlive the object. `path` may be "-". DataError when it can't be read.
  PromptReader(const std::string& path, const TextOptions& options, const Vocabulary& vocabulary,
               BadLines bad_lines = BadLines::error);

  Status take(Prompt& prompt, bool wait) override;

  [[nodiscard]] const LineReader& lines() const noexcept { return reader_; }

 private:
  LineReader reader_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  BadLines bad_lines_;
  int64_t count_ = 0;
};

/// Prompts given as text, such as on the command line.
class PromptList : public PromptFeed {
 public:
  /// A text that is not well-formed is a bad line, with its number among the texts.
  PromptList(std::vector<std::string> texts, const TextOptions& options, const Vocabulary& vocabulary,
             BadLines bad_lines = BadLines::error);

  Status take(Prompt& prompt, bool wait) override;

 private:
  std::vector<std::string> texts_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  BadLines bad_lines_;
  size_t next_ = 0;
};

}  // namespace hsm
