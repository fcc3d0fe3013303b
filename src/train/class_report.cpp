#include "train/class_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cmath>
#include <string>
#include <utility>

#include "base/size.h"
#include "train/reading_report.h"

namespace hsm {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};

std::string label_of(const ExchangeProgress& progress) {
  switch (progress.stage) {
    case ExchangeStage::counting:
      return "classes: counting pairs of words";
    case ExchangeStage::exchanging:
      return fmt::format("classes: round {}", progress.round);
    case ExchangeStage::placing:
      return "classes: placing rare words";
  }
  return {};
}

}  // namespace

ClassReport::ClassReport(std::function<bool()> stop)
    : stop_(std::move(stop)), line_(STDERR_FILENO), logged_(std::chrono::steady_clock::now()) {}

ExchangeReport ClassReport::report() {
  return [this](const ExchangeProgress& progress) {
    if (stop_()) throw ReadingStopped{};
    show(progress);
  };
}

void ClassReport::show(const ExchangeProgress& progress) {
  const std::string label = label_of(progress);
  if (progress.round_done) {
    line_.clear();
    spdlog::info("{}: log-likelihood of a token {:.4f} (class bigram perplexity {:.1f}), {} {} moved", label,
                 progress.log_likelihood, std::exp(-progress.log_likelihood), format_count(progress.moves),
                 progress.moves == 1 ? "word" : "words");
    logged_ = std::chrono::steady_clock::now();
    return;
  }
  if (line_.due()) line_.draw(progress.part, label, "");
  const auto now = std::chrono::steady_clock::now();
  if (line_.active() || now - logged_ < kBetweenLines) return;
  logged_ = now;
  spdlog::info("{}: {:.0f} %", label, 100 * progress.part);
}

}  // namespace hsm
