#include "train/reading_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <utility>

#include "base/size.h"

namespace hsm {
namespace {

constexpr std::chrono::seconds kBetweenLines{10};

}  // namespace

ReadingReport::ReadingReport(std::string label, std::function<bool()> stop)
    : label_(std::move(label)),
      stop_(std::move(stop)),
      line_(STDERR_FILENO),
      logged_(std::chrono::steady_clock::now()) {}

ReadProgress ReadingReport::progress() {
  return [this](uint64_t done, uint64_t total) {
    if (stop_()) throw ReadingStopped{};
    show(done, total);
  };
}

void ReadingReport::show(uint64_t done, uint64_t total) {
  const double part = total > 0 ? static_cast<double>(done) / static_cast<double>(total) : 0;
  if (line_.due()) line_.draw(part, label_, format_size(done));
  const auto now = std::chrono::steady_clock::now();
  if (line_.active() || now - logged_ < kBetweenLines) return;
  logged_ = now;
  spdlog::info("{}: {}{}", label_, format_size(done), total > 0 ? " of " + format_size(total) : "");
}

}  // namespace hsm
