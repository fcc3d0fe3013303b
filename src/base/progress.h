#pragma once
#include <chrono>
#include <cstddef>
#include <string>
#include <string_view>

namespace hsm {

/// "LABEL [=====>    ]  45% DETAILS", cut to `width` columns; the bar gives way before the text does.
/// `fraction` is clamped to [0, 1].
std::string render_progress(double fraction, std::string_view label, std::string_view details, size_t width);

/// One line redrawn in place on a terminal. Elsewhere (a file, a pipe, TERM=dumb) it stays silent: callers
/// ask active() and log plain lines instead. Clear it before other output to the same terminal.
class ProgressLine {
 public:
  /// `descriptor` stays the caller's; standard error as a rule.
  explicit ProgressLine(int descriptor);
  ~ProgressLine();
  ProgressLine(const ProgressLine&) = delete;
  ProgressLine& operator=(const ProgressLine&) = delete;

  [[nodiscard]] bool active() const noexcept { return active_; }
  /// True when the line hasn't been drawn for a tenth of a second, so that drawing costs nothing to speak of.
  [[nodiscard]] bool due() const noexcept;
  void draw(double fraction, std::string_view label, std::string_view details);
  void clear() noexcept;

 private:
  using Clock = std::chrono::steady_clock;

  int descriptor_;
  bool active_;
  bool drawn_ = false;
  Clock::time_point last_{};
};

}  // namespace hsm
