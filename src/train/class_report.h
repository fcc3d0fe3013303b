#pragma once
#include <chrono>
#include <functional>

#include "base/progress.h"
#include "classes/exchange.h"

namespace hsm {

/// Shows on standard error how clustering goes: a log line a round, a bar on a terminal. Ends it, by
/// ReadingStopped, when asked to.
class ClassReport {
 public:
  explicit ClassReport(std::function<bool()> stop);

  /// Refers to this object.
  [[nodiscard]] ExchangeReport report();

 private:
  void show(const ExchangeProgress& progress);

  std::function<bool()> stop_;
  ProgressLine line_;
  std::chrono::steady_clock::time_point logged_;
};

}  // namespace hsm
