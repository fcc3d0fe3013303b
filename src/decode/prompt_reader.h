#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "decode/prompt.h"
#include "text/lines.h"
#include "text/vocabulary.h"

namespace hsm {

/// Prompts from a file or standard input, one a line. Never waits for a line while others are in work, so
/// that someone who types gets each answer before the next line.
class PromptReader : public PromptFeed {
 public:
  /// The vocabulary must outlive the object. `path` may be "-". DataError when it can't be read.
  PromptReader(const std::string& path, const TextOptions& options, const Vocabulary& vocabulary);

  Status take(Prompt& prompt, bool wait) override;

  [[nodiscard]] const std::string& name() const noexcept { return reader_.name(); }
  [[nodiscard]] int64_t lines() const noexcept { return count_; }

 private:
  LineReader reader_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  int64_t count_ = 0;
  std::string line_;
  std::vector<std::string_view> words_;
};

/// Prompts given as text, such as on the command line.
class PromptList : public PromptFeed {
 public:
  /// take() throws DataError, with the number of the text as its line, when one is not well-formed.
  PromptList(std::vector<std::string> texts, const TextOptions& options, const Vocabulary& vocabulary);

  Status take(Prompt& prompt, bool wait) override;

 private:
  std::vector<std::string> texts_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  size_t next_ = 0;
};

}  // namespace hsm
