#pragma once
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "config/config.h"
#include "text/batch_source.h"
#include "text/prefetch.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/run_directory.h"
#include "train/schedule.h"
#include "train/training_data.h"
#include "train/training_engine.h"
#include "train/training_report.h"
#include "train/training_state.h"

namespace hsm {

/// What the loop asks between steps.
struct TrainingRequests {
  std::function<bool()> stop;        ///< save a checkpoint and return?
  std::function<bool()> checkpoint;  ///< save a checkpoint and go on? True once a request
};

enum class Outcome { finished, stopped };

/// What a loop works on; all of it outlives the loop.
struct TrainingParts {
  const Config& config;
  const RunDirectory& directory;
  const TrainingData& data;
  TrainingEngine& engine;
  CheckpointStore& checkpoints;
  ThreadPool& pool;
};

/// Steps, validations and savings of a run, in an order that a kill at any moment leaves consistent:
/// metrics are synced before a checkpoint that counts them, and the checkpoint of a best validation is
/// written before its model, which resuming from that checkpoint can then write again.
class TrainingLoop {
 public:
  explicit TrainingLoop(const TrainingParts& parts);

  /// Starts a run: the first metrics line and a checkpoint before the first step, so that a full or
  /// unwritable disk shows at once.
  void start();
  /// Goes on from a checkpoint.
  void resume(const Checkpoint& checkpoint);
  /// Error with ExitCode::diverged when a loss, gradient or validation isn't finite; no checkpoint is
  /// written then, so the last one is good.
  Outcome run(const TrainingRequests& requests);

 private:
  using Clock = std::chrono::steady_clock;

  void begin_validations_anew_if_text_differs();
  void average_from_now_on_if_asked();
  void train_window(const Batch& batch);
  /// Takes the results of steps in until no more than `pending` are still at work.
  void take_results(int64_t pending);
  void after_window(bool epoch_over);
  bool validation_due(bool epoch_over) const;
  bool checkpoint_due(bool epoch_over) const;
  /// Perplexity, and whether it is a new best.
  bool validate();
  void log_validation(bool epoch_over, bool validated, bool improved);
  void save_checkpoint();
  void save_on_request();
  void save_model();
  void finish();
  [[nodiscard]] TrainingPace pace() const;
  /// Of the latest step, from 1.
  [[nodiscard]] int64_t epoch() const;
  /// Adds the time since the last call to the run's and the epoch's; returns it.
  double lap();
  [[noreturn]] void diverged(const StepPosition& at, const std::string& what) const;

  TrainingParts parts_;
  std::unique_ptr<BatchSource> batches_;
  Schedule schedule_;
  TrainingState state_;
  TrainingReport report_;
  std::optional<MetricsLog> metrics_;
  int64_t windows_ = 0;      // of the running epoch
  double rate_ = 0;          // of the latest step begun, or the one to go on with
  double perplexity_ = 0;    // of the latest validation
  int64_t saved_step_ = -1;  // of the latest checkpoint
  Clock::time_point saved_at_;
  Clock::time_point lap_;
};

}  // namespace hsm
