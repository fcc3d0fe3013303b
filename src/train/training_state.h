#pragma once
#include <cstdint>
#include <limits>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "config/config.h"
#include "model/scaled_weights.h"
#include "model/training_model.h"
#include "train/schedule.h"

namespace hsm {

/// Sums over the windows of the running epoch.
struct EpochSums {
  double loss = 0;  ///< natural logarithm
  int64_t targets = 0;
  double training_seconds = 0;  ///< steps alone, without validation and saving
  double seconds = 0;           ///< all of it

  /// exp(loss / targets); not a number before the first target.
  [[nodiscard]] double perplexity() const;
  /// Targets for each second of training; 0 before the first.
  [[nodiscard]] double words_per_second() const;
};

/// What validations have shown so far.
struct ValidationHistory {
  double best = std::numeric_limits<double>::infinity();  ///< lowest perplexity
  int64_t best_step = -1;                                 ///< steps made when it was measured; -1: none yet
  int64_t best_epoch = 0;                                 ///< from 1
  int64_t without_improvement = 0;                        ///< validations since the best
  int64_t last_step = -1;                                 ///< steps made at the latest validation
  double last_seconds = 0;                                ///< and seconds of the run
  std::optional<LogitScales> scales;                      ///< what it was calibrated to, if it was
  std::vector<double> recent;                             ///< perplexities that stagnates() passes over
  double best_before_recent = std::numeric_limits<double>::infinity();  ///< the lowest before them

  /// Takes a validation in; true when it is a new best.
  bool record(double perplexity, int64_t epoch, int64_t step, double seconds);
  /// Whether a validation of this perplexity is worse than the best of all but the last `patience` before it.
  /// Takes it in for the next call.
  bool stagnates(double perplexity, int64_t patience);
};

/// Where a run stands, apart from its tensors: all that a checkpoint holds as JSON. Position: `epoch` and
/// `window` are the next ones to train on, `step` counts those made.
struct TrainingState {
  StepPosition position;
  EpochSums sums;
  PlateauState plateau;
  ValidationHistory validations;
  double seconds = 0;          ///< of the run so far, over all its sessions
  int64_t streams = 0;         ///< rows of the carried recurrent state; 0: none yet
  uint64_t metrics_bytes = 0;  ///< length of metrics.jsonl at this point
  std::string data_hash;       ///< of the training tokens
  std::string valid_hash;      ///< of the validation tokens; empty: there are none
  std::string layout_hash;     ///< of the head's layout, which says what word a row of weights is of
};

/// Why the run ends here by its settings: "epochs", "max_steps", "max_time" or "early_stopping"; empty
/// when it goes on. A pure function, so that a run that was ended can go on under other settings.
std::string end_reason(const TrainConfig& config, const TrainingState& state);

/// Numbers are written so that they read back to the same bits.
std::string dump_state(const TrainingState& state);

/// DataError, starting with `name`, when `json` is not such a state.
TrainingState parse_state(std::string_view json, std::string_view name);

}  // namespace hsm
