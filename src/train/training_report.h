#pragma once
#include <cstdint>
#include <string>

#include "base/progress.h"
#include "train/training_state.h"

namespace hsm {

/// How far a run is, for people.
struct TrainingPace {
  int64_t epochs = 0;         ///< of the whole run
  int64_t windows = 0;        ///< of the running epoch
  int64_t steps_left = 0;     ///< to the end of the run; the largest number when that isn't known
  double seconds_a_step = 0;  ///< of training alone
};

/// "epoch 3/13", or "epoch 3" when there is no last one. `epoch` from 1.
std::string epoch_label(int64_t epoch, int64_t epochs);

/// "12,345 words/s  loss 4.810  perplexity 122.7  left 3m20s".
std::string describe_pace(const TrainingState& state, const TrainingPace& pace);

/// Shows on standard error how training goes: a bar on a terminal, else a log line now and then.
class TrainingReport {
 public:
  /// A log line each `log_every` steps where there is no terminal; 0: none.
  explicit TrainingReport(int64_t log_every);

  /// After each step.
  void step(const TrainingState& state, const TrainingPace& pace);
  /// A line that stays.
  void say(const std::string& line);
  void warn(const std::string& line);
  /// Shows that something without steps of its own goes on ("validating").
  void phase(const std::string& what);

 private:
  int64_t log_every_;
  ProgressLine line_;
  double part_ = 0;  // of the epoch, at the latest step
  std::string label_;
};

}  // namespace hsm
