#include "train/training_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <cmath>
#include <limits>

#include "base/size.h"

namespace hsm {

std::string epoch_label(int64_t epoch, int64_t epochs) {
  return epochs > 0 ? fmt::format("epoch {}/{}", epoch, epochs) : fmt::format("epoch {}", epoch);
}

std::string describe_pace(const TrainingState& state, const TrainingPace& pace) {
  const double loss = state.sums.loss / static_cast<double>(state.sums.targets);
  std::string text =
      fmt::format("{} words/s  loss {:.3f}  perplexity {:.1f}",
                  format_count(std::llround(state.sums.words_per_second())), loss, state.sums.perplexity());
  if (pace.steps_left == std::numeric_limits<int64_t>::max()) return text;
  return text + "  left " + format_seconds(pace.seconds_a_step * static_cast<double>(pace.steps_left));
}

TrainingReport::TrainingReport(int64_t log_every) : log_every_(log_every), line_(STDERR_FILENO) {}

void TrainingReport::step(const TrainingState& state, const TrainingPace& pace) {
  const bool logs = !line_.active() && log_every_ > 0 && state.position.step % log_every_ == 0;
  if (!logs && !line_.due()) return;
  label_ = epoch_label(state.position.epoch + 1, pace.epochs);
  part_ = static_cast<double>(state.position.window) / static_cast<double>(pace.windows);
  if (logs) {
    spdlog::info("{}  window {}/{}  {}", label_, state.position.window, pace.windows,
                 describe_pace(state, pace));
  } else {
    line_.draw(part_, label_, describe_pace(state, pace));
  }
}

void TrainingReport::say(const std::string& line) {
  line_.clear();
  spdlog::info("{}", line);
}

void TrainingReport::warn(const std::string& line) {
  line_.clear();
  spdlog::warn("{}", line);
}

void TrainingReport::phase(const std::string& what) {
  line_.draw(part_, label_, what);
}

}  // namespace hsm
