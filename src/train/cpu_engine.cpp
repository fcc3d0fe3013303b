#include <cmath>
#include <deque>
#include <limits>
#include <utility>

#include "base/error.h"
#include "eval/token_scorer.h"
#include "train/optimizer.h"
#include "train/touched_rows.h"
#include "train/training_engine.h"
#include "train/weight_average.h"

namespace hsm {
namespace {

class CpuEngine final : public TrainingEngine {
 public:
  CpuEngine(const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool)
      : model_(config.model, std::move(shape), std::move(layout), config.train.seed, pool),
        optimizer_(config.train.optimizer, config.train.clip_norm, model_.parameters(), pool),
        average_(model_.parameters(), pool),
        pool_(pool) {
    model_.cut_steps({config.train.micro_batches, config.train.head_chunk});
    if (optimizer_.takes_factors()) model_.leave_factors();
  }

  [[nodiscard]] const ModelShape& shape() const noexcept override { return model_.shape(); }
  [[nodiscard]] const HeadLayout& layout() const noexcept override { return model_.layout(); }
  [[nodiscard]] int64_t lookahead() const noexcept override { return 0; }
  [[nodiscard]] int64_t pending() const noexcept override { return static_cast<int64_t>(results_.size()); }

  void begin_step(const Batch& batch, const StepOptions& options) override {
    if (optimizer_.needs_touched_rows()) {
      optimizer_.catch_up(touched_rows(batch, model_.layout(), model_.shape().tied));
    }
    StepResult result{options.position, batch.target_count, 0, std::numeric_limits<double>::quiet_NaN()};
    result.loss = model_.step(batch, options.position, options.scale);
    if (std::isfinite(result.loss)) result.norm = optimizer_.update(options.learning_rate);
    if (average_.running() && std::isfinite(result.norm)) {
      optimizer_.catch_up_all();
      average_.add();
    }
    streams_ = batch.streams;
    results_.push_back(result);
  }

  StepResult finish_step() override {
    const StepResult result = results_.front();
    results_.pop_front();
    return result;
  }

  void settle() override { optimizer_.catch_up_all(); }
  void start_averaging() override { average_.start(); }
  [[nodiscard]] bool averaging() const noexcept override { return average_.running(); }
  WeightView weights() override { return average_.empty() ? model_.weight_view() : average_.view(); }
  std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence, const LogitScales& scales) override {
    return make_cpu_scorer(shape(), layout(), ScaledWeights(shape(), layout(), weights(), scales),
                           end_of_sentence, pool_);
  }

  void append_state(std::vector<StateTensor>& tensors) override {
    append_model(tensors);
    optimizer_.append_state(tensors);
    average_.append_state(tensors);
  }

  void restore(const Checkpoint& checkpoint) override {
    streams_ = checkpoint.state.streams;
    std::vector<StateTensor> tensors;
    append_model(tensors);
    checkpoint.restore(tensors);
    optimizer_.restore(checkpoint);
    average_.restore(checkpoint);
  }

 private:
  // Parameters and carried states.
  void append_model(std::vector<StateTensor>& tensors) {
    for (const Parameter& parameter : model_.parameters()) {
      tensors.push_back({"parameter." + parameter.name, DType::f32, parameter.shape, parameter.value.data()});
    }
    if (streams_ == 0) return;
    const std::span<float> carried = model_.carried_state(streams_);
    tensors.push_back({"carried_state", DType::f32, {streams_, model_.shape().state_size()}, carried.data()});
  }

  TrainingModel model_;
  Optimizer optimizer_;
  WeightAverage average_;
  ThreadPool& pool_;
  int64_t streams_ = 0;  // rows of the carried states; 0 before the first step
  std::deque<StepResult> results_;
};

}  // namespace

void check_cpu_precision(const TrainConfig& config) {
  if (config.precision == "fp32") return;
  throw UsageError(
      "train.precision: \"" + config.precision +
      "\" given, but training runs on the CPU, which computes in \"fp32\"; a GPU is asked for by "
      "runtime.device \"cuda\"");
}

std::unique_ptr<TrainingEngine> make_cpu_engine(const Config& config, ModelShape shape, HeadLayout layout,
                                                ThreadPool& pool) {
  check_cpu_precision(config.train);
  return std::make_unique<CpuEngine>(config, std::move(shape), std::move(layout), pool);
}

}  // namespace hsm
