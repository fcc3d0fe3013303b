#include "base/progress.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>

namespace hsm {
namespace {

constexpr size_t kWidestBar = 30;
constexpr size_t kNarrowestBar = 5;
constexpr std::chrono::milliseconds kRedraw{100};

bool is_terminal(int descriptor) {
  const char* kind = std::getenv("TERM");
  return ::isatty(descriptor) == 1 && kind != nullptr && std::string_view(kind) != "dumb";
}

size_t columns(int descriptor) {
  winsize size{};
  if (::ioctl(descriptor, TIOCGWINSZ, &size) != 0 || size.ws_col == 0) return 80;
  return size.ws_col;
}

std::string bar(double fraction, size_t width) {
  const auto full = static_cast<size_t>(fraction * static_cast<double>(width));
  std::string drawn(std::min(full, width), '=');
  if (drawn.size() < width) drawn += '>';
  drawn.resize(width, ' ');
  return " [" + drawn + "]";
}

// A terminal that went away loses its progress line and nothing else.
void put(int descriptor, std::string_view text) {
  [[maybe_unused]] const ssize_t ignored = ::write(descriptor, text.data(), text.size());
}

}  // namespace

std::string render_progress(double fraction, std::string_view label, std::string_view details, size_t width) {
  const double part = std::isnan(fraction) ? 0 : std::clamp(fraction, 0.0, 1.0);
  char percent[8];
  std::snprintf(percent, sizeof percent, " %3d%%", static_cast<int>(part * 100));
  const std::string text = std::string(percent) + (details.empty() ? "" : " ") + std::string(details);

  std::string line(label);
  const size_t taken = line.size() + text.size() + 3;  // " [" and "]"
  if (taken + kNarrowestBar <= width) line += bar(part, std::min(kWidestBar, width - taken));
  line += text;
  if (line.size() > width) line.resize(width);
  return line;
}

ProgressLine::ProgressLine(int descriptor) : descriptor_(descriptor), active_(is_terminal(descriptor)) {}

ProgressLine::~ProgressLine() {
  clear();
}

bool ProgressLine::due() const noexcept {
  return active_ && (!drawn_ || Clock::now() - last_ >= kRedraw);
}

void ProgressLine::draw(double fraction, std::string_view label, std::string_view details) {
  if (!active_) return;
  // One column stays free: a full line makes some terminals wrap.
  put(descriptor_, "\r" + render_progress(fraction, label, details, columns(descriptor_) - 1) + "\x1b[K");
  drawn_ = true;
  last_ = Clock::now();
}

void ProgressLine::clear() noexcept {
  if (drawn_) put(descriptor_, "\r\x1b[K");
  drawn_ = false;
}

}  // namespace hsm
