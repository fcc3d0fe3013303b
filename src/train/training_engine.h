#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

#include "base/thread_pool.h"
#include "classes/word_classes.h"
#include "config/config.h"
#include "eval/text_scorer.h"
#include "model/inference_model.h"
#include "model/model_shape.h"
#include "model/scaled_weights.h"
#include "model/training_model.h"
#include "text/batches.h"
#include "train/checkpoint.h"

namespace hsm {

/// What a training step is to do beside its batch.
struct StepOptions {
  StepPosition position;     ///< keys of the random numbers
  float scale = 1;           ///< factor of the window's summed loss
  double learning_rate = 0;  ///< of this step
};

/// What became of a step. When loss or norm isn't finite, the step has changed no parameter.
struct StepResult {
  StepPosition position;  ///< of the step
  int64_t targets = 0;    ///< of its batch
  double loss = 0;        ///< sum over the window (natural logarithm)
  double norm = 0;        ///< of the gradients over all parameters, before clipping
  bool skipped = false;   ///< the gradient overflowed for its loss scale, which is lowered: no divergence
};

/// A model while it learns, and where it does so: parameters, what the optimiser keeps about them, and
/// carried recurrent states lie wherever the engine likes. A step is forward, backward, clipping and update.
///
/// Steps may be worked on in the background: begin_step() queues one, finish_step() waits for the oldest. All
/// other functions but shape() and layout() are for when no step is pending. The same calls in the same order
/// give the same bits, however long a caller waits between them.
class TrainingEngine {
 public:
  virtual ~TrainingEngine() = default;

  [[nodiscard]] virtual const ModelShape& shape() const noexcept = 0;
  [[nodiscard]] virtual const HeadLayout& layout() const noexcept = 0;

  /// Steps that may be pending while the next one begins, for the engine never to idle. 0 when begin_step()
  /// does all the work.
  [[nodiscard]] virtual int64_t lookahead() const noexcept = 0;
  /// Begins a step after all that were begun before; `batch` needn't stay.
  virtual void begin_step(const Batch& batch, const StepOptions& options) = 0;
  /// Steps begun and not finished.
  [[nodiscard]] virtual int64_t pending() const noexcept = 0;
  /// Waits for the oldest pending step.
  virtual StepResult finish_step() = 0;

  /// From now on keeps the mean of the weights over updates, which weights() then gives (asgd).
  virtual void start_averaging() = 0;
  [[nodiscard]] virtual bool averaging() const noexcept = 0;

  /// Does what the optimiser has put off for rows that no batch touched, as before a validation. Rounds, so
  /// it belongs at steps that are the same in every run of a configuration: never at a checkpoint.
  virtual void settle() = 0;
  /// The parameters as they are, or their mean while averaging, in host memory; valid until the next step,
  /// settle() or restore().
  virtual WeightView weights() = 0;
  /// Scores text with what weights() gives and logits scaled by these factors, where the engine computes;
  /// valid as long. `end_of_sentence` is the vocabulary's.
  virtual std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence, const LogitScales& scales) = 0;

  /// Adds everything a checkpoint must hold, in host memory; valid as weights() is.
  virtual void append_state(std::vector<StateTensor>& tensors) = 0;
  virtual void restore(const Checkpoint& checkpoint) = 0;
};

using TrainingEngineFactory =
    std::function<std::unique_ptr<TrainingEngine>(const Config&, ModelShape, HeadLayout, ThreadPool&)>;

/// UsageError when train.precision is one that the CPU does not compute in.
void check_cpu_precision(const TrainConfig& config);

/// The engine that runs on the processor. `pool` outlives it. UsageError as for check_cpu_precision().
std::unique_ptr<TrainingEngine> make_cpu_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                ThreadPool& pool);

}  // namespace hsm
