#pragma once
#include <cstdint>
#include <string>

#include "base/progress.h"
#include "text/lines.h"

namespace hsm::cli {

/// How much of a regular file has been read, on a terminal that doesn't show the results themselves.
class ReadingProgress {
 public:
  explicit ReadingProgress(bool results_on_terminal);

  /// `path` may be "-" or empty: then nothing is drawn.
  void start(const std::string& path);
  void draw(const LineReader& reader);
  void clear() noexcept { line_.clear(); }

 private:
  bool shown_;
  uint64_t total_ = 0;
  ProgressLine line_;
};

}  // namespace hsm::cli
