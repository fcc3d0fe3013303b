#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <string>

#include "base/progress.h"
#include "text/corpus.h"

namespace hsm {

/// Thrown out of a long read that was asked to stop.
struct ReadingStopped {};

/// Shows on standard error how the reading of a text goes, a bar on a terminal, else a log line now and then,
/// and ends it when asked to.
class ReadingReport {
 public:
  ReadingReport(std::string label, std::function<bool()> stop);

  /// Refers to this object.
  [[nodiscard]] ReadProgress progress();

 private:
  void show(uint64_t done, uint64_t total);

  std::string label_;
  std::function<bool()> stop_;
  ProgressLine line_;
  std::chrono::steady_clock::time_point logged_;
};

}  // namespace hsm
