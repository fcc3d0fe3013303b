#pragma once
#include <cstdint>
#include <string>

#include "decode/prompt.h"
#include "decode/prompt_reader.h"
#include "text/lines.h"
#include "text/vocabulary.h"

namespace hsm {

struct NetworkReaderOptions {
  int64_t max_positions = 1000;
  BadLines bad_lines = BadLines::error;
};

/// Confusion networks from a file or standard input, a JSON object a line (docs/decoding.md has the format).
class NetworkReader : public PromptFeed {
 public:
  /// The vocabulary must outlive the object. `path` may be "-". DataError when it can't be read; a
  /// line of more than max_positions is a bad one, too.
  NetworkReader(const std::string& path, const TextOptions& options, const Vocabulary& vocabulary,
                const NetworkReaderOptions& limits);

  Status take(Prompt& prompt, bool wait) override;

  [[nodiscard]] const LineReader& lines() const noexcept { return reader_; }

 private:
  LineReader reader_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  NetworkReaderOptions limits_;
  int64_t count_ = 0;
  std::string line_;
};

}  // namespace hsm
