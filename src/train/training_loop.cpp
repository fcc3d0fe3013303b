#include "train/training_loop.h"

#include <spdlog/fmt/fmt.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <span>

#include "base/error.h"
#include "base/memory.h"
#include "base/size.h"
#include "model/model_directory.h"
#include "train/validation.h"

namespace hsm {
namespace {

using Json = nlohmann::ordered_json;

/// Steps of the whole run, which the cosine schedule spans.
int64_t total_steps(const TrainConfig& config, const BatchSource& batches) {
  if (config.epochs == 0) return config.max_steps;
  int64_t steps = 0;
  for (int64_t epoch = 0; epoch < config.epochs; ++epoch) steps += batches.windows(epoch);
  return config.max_steps > 0 ? std::min(steps, config.max_steps) : steps;
}

Schedule make_schedule(const TrainConfig& config, const BatchSource& batches) {
  // Counting the windows of epochs to come may take a while; only cosine asks for them.
  const int64_t steps = config.schedule.name == "cosine" ? total_steps(config, batches) : 0;
  return {config.schedule, config.optimizer.learning_rate, steps};
}

/// Factor of the window's summed loss: its mean over targets, or the sum over time of means over streams.
float loss_scale(const TrainConfig& config, const Batch& batch) {
  const int64_t divisor = config.loss_reduction == "mean" ? batch.target_count : batch.streams;
  return divisor > 0 ? static_cast<float>(1.0 / static_cast<double>(divisor)) : 0.0F;
}

bool all_finite(const std::vector<StateTensor>& tensors) {
  return std::ranges::all_of(tensors, [](const StateTensor& tensor) {
    if (tensor.dtype != DType::f32) return true;
    const TensorRef ref{tensor.name, tensor.dtype, tensor.shape, tensor.data};
    const std::span values(static_cast<const float*>(ref.data), static_cast<size_t>(ref.count()));
    return std::ranges::all_of(values, [](float value) { return std::isfinite(value); });
  });
}

bool multiple(int64_t count, int64_t interval) {
  return interval > 0 && count % interval == 0;
}

}  // namespace

TrainingLoop::TrainingLoop(const TrainingParts& parts)
    : parts_(parts),
      batches_(parts.data.batches(parts.config)),
      schedule_(make_schedule(parts.config.train, *batches_)),
      report_(parts.config.output.log_every),
      saved_at_(Clock::now()),
      lap_(Clock::now()) {}

void TrainingLoop::start() {
  state_.data_hash = parts_.data.hash;
  state_.valid_hash = parts_.data.valid_hash;
  state_.layout_hash = parts_.data.layout.hash();
  metrics_.emplace(parts_.directory.metrics(), 0);
  average_from_now_on_if_asked();
  metrics_->append({{"event", "start"},
                    {"parameters", parts_.engine.shape().parameter_count()},
                    {"words", parts_.engine.shape().words},
                    {"clusters", parts_.engine.layout().clusters()},
                    {"shortlist", parts_.engine.layout().shortlist()},
                    {"train_tokens", parts_.data.train.size()}});
  save_checkpoint();
}

void TrainingLoop::resume(const Checkpoint& checkpoint) {
  state_ = checkpoint.state;
  begin_validations_anew_if_text_differs();
  schedule_.restore(state_.plateau);
  parts_.engine.restore(checkpoint);
  average_from_now_on_if_asked();
  saved_step_ = state_.position.step;
  rate_ = schedule_.rate(state_.position.epoch, state_.position.step);
  metrics_.emplace(parts_.directory.metrics(), state_.metrics_bytes);
  if (metrics_->bytes() < state_.metrics_bytes) {
    report_.warn(parts_.directory.metrics().string() + ": lines before the checkpoint are missing");
  }
  // The parameters of a best validation are those of the checkpoint written right after it. A kill may have
  // come before they reached model.safetensors.
  if (state_.validations.best_step == state_.position.step) save_model();
  report_.say(fmt::format("going on after step {} ({})", state_.position.step,
                          epoch_label(state_.position.epoch + 1, parts_.config.train.epochs)));
}

void TrainingLoop::begin_validations_anew_if_text_differs() {
  if (state_.valid_hash == parts_.data.valid_hash) return;
  ValidationHistory& validations = state_.validations;
  if (validations.best_step >= 0) {
    report_.warn(parts_.data.valid
                     ? "the validation text is another one, whose perplexities can't be compared with those "
                       "before: the next is the best so far"
                     : "there is no validation text any more: the model will have the last weights");
  }
  const double last_seconds = validations.last_seconds;
  validations = {};
  validations.last_seconds = last_seconds;
  state_.plateau.best = std::numeric_limits<double>::infinity();
  state_.plateau.without_improvement = 0;
  state_.valid_hash = parts_.data.valid_hash;
}

void TrainingLoop::average_from_now_on_if_asked() {
  const OptimizerConfig& optimizer = parts_.config.train.optimizer;
  if (optimizer.name != "asgd" || optimizer.average_patience > 0 || parts_.engine.averaging()) return;
  parts_.engine.start_averaging();
}

Outcome TrainingLoop::run(const TrainingRequests& requests) {
  lap();
  PrefetchedBatches batches(*batches_, state_.position.epoch, state_.position.window);
  windows_ = batches_->windows(state_.position.epoch);
  while (end_reason(parts_.config.train, state_).empty()) {
    if (requests.stop()) {
      save_on_request();
      return Outcome::stopped;
    }
    if (requests.checkpoint()) save_on_request();
    train_window(batches.next().batch);
    const bool epoch_over = state_.position.window == windows_;
    if (epoch_over) {
      ++state_.position.epoch;
      state_.position.window = 0;
    }
    after_window(epoch_over);
    if (epoch_over) windows_ = batches_->windows(state_.position.epoch);
  }
  finish();
  return Outcome::finished;
}

void TrainingLoop::train_window(const Batch& batch) {
  rate_ = schedule_.rate(state_.position.epoch, state_.position.step);
  parts_.engine.begin_step(batch, {state_.position, loss_scale(parts_.config.train, batch), rate_});
  state_.streams = batch.streams;
  ++state_.position.window;
  ++state_.position.step;
  take_results(parts_.engine.lookahead());
  state_.sums.training_seconds += lap();
  if (state_.sums.targets > 0) report_.step(state_, pace());
}

void TrainingLoop::take_results(int64_t pending) {
  while (parts_.engine.pending() > pending) {
    const StepResult result = parts_.engine.finish_step();
    if (!std::isfinite(result.loss)) diverged(result.position, fmt::format("the loss is {}", result.loss));
    if (!std::isfinite(result.norm) && !result.skipped) {
      diverged(result.position, fmt::format("the gradient's norm is {}", result.norm));
    }
    state_.sums.loss += result.loss;
    state_.sums.targets += result.targets;
  }
}

void TrainingLoop::after_window(bool epoch_over) {
  const TrainConfig& config = parts_.config.train;
  const bool validates =
      parts_.data.valid && (validation_due(epoch_over) || !end_reason(config, state_).empty());
  if (epoch_over || validates) take_results(0);
  if (epoch_over && state_.sums.targets > 0 && !std::isfinite(state_.sums.perplexity())) {
    diverged(state_.position, "the training perplexity is infinite");
  }
  const bool improved = validates && validate();
  if (epoch_over || validates) log_validation(epoch_over, validates, improved);
  if (epoch_over) {
    parts_.engine.settle();  // bounds the learning rates that it remembers
    state_.sums = {};
  }
  if (improved || checkpoint_due(epoch_over)) save_checkpoint();
  if (improved) save_model();
  lap();
}

bool TrainingLoop::validation_due(bool epoch_over) const {
  const IntervalConfig& every = parts_.config.train.validate_every;
  return (epoch_over && multiple(state_.position.epoch, every.epochs)) ||
         multiple(state_.position.step, every.steps) ||
         (every.minutes > 0 && state_.seconds - state_.validations.last_seconds >= every.minutes * 60);
}

bool TrainingLoop::checkpoint_due(bool epoch_over) const {
  const IntervalConfig& every = parts_.config.train.checkpoint_every;
  const std::chrono::duration<double> since = Clock::now() - saved_at_;
  return (epoch_over && multiple(state_.position.epoch, every.epochs)) ||
         multiple(state_.position.step, every.steps) ||
         (every.minutes > 0 && since.count() >= every.minutes * 60);
}

bool TrainingLoop::validate() {
  report_.phase("validating");
  parts_.engine.settle();
  const TrainConfig& config = parts_.config.train;
  const Validation validation =
      hsm::validate(parts_.engine, config, parts_.data.vocabulary, *parts_.data.valid);
  perplexity_ = validation.perplexity;
  state_.validations.scales = validation.scales;
  lap();
  if (!std::isfinite(perplexity_)) {
    diverged(state_.position, fmt::format("the validation perplexity is {}", perplexity_));
  }
  const OptimizerConfig& optimizer = config.optimizer;
  if (optimizer.name == "asgd" && !parts_.engine.averaging() &&
      state_.validations.stagnates(perplexity_, optimizer.average_patience)) {
    parts_.engine.start_averaging();
    report_.say("from here on the mean of the weights counts");
  }
  schedule_.record_validation(perplexity_);
  state_.plateau = schedule_.state();
  return state_.validations.record(perplexity_, epoch(), state_.position.step, state_.seconds);
}

void TrainingLoop::log_validation(bool epoch_over, bool validated, bool improved) {
  const EpochSums& sums = state_.sums;
  const auto scale = [&](float LogitScales::*which) {
    const std::optional<LogitScales>& scales = state_.validations.scales;
    return validated && scales ? Json((*scales).*which) : Json(nullptr);
  };
  Json event{{"event", epoch_over ? "epoch" : "validation"},
             {"epoch", epoch()},
             {"step", state_.position.step},
             {"train_perplexity", sums.perplexity()},
             {"valid_perplexity", validated ? Json(perplexity_) : Json(nullptr)},
             {"root_scale", scale(&LogitScales::root)},
             {"cluster_scale", scale(&LogitScales::cluster)},
             {"words_per_second", sums.words_per_second()},
             {"seconds", sums.seconds},
             {"learning_rate", rate_},
             {"peak_memory_bytes", peak_resident_bytes()}};
  metrics_->append(event);
  const std::string place = epoch_over ? "" : fmt::format(", step {}", state_.position.step);
  const std::string trained =
      sums.targets > 0 ? fmt::format("train perplexity {:.2f}  ", sums.perplexity()) : "";
  const std::string valid =
      validated ? fmt::format("valid perplexity {:.2f}{}  ", perplexity_, improved ? " (best)" : "") : "";
  report_.say(fmt::format("{}{}: {}{}{} words/s  {}  learning rate {:g}",
                          epoch_label(epoch(), parts_.config.train.epochs), place, trained, valid,
                          format_count(std::llround(sums.words_per_second())), format_seconds(sums.seconds),
                          rate_));
}

void TrainingLoop::save_checkpoint() {
  take_results(0);
  if (saved_step_ == state_.position.step) return;
  report_.phase("saving");
  lap();
  metrics_->sync();
  state_.metrics_bytes = metrics_->bytes();
  std::vector<StateTensor> tensors;
  parts_.engine.append_state(tensors);
  if (!all_finite(tensors)) diverged(state_.position, "a weight is not finite");
  parts_.checkpoints.save(state_, tensors);
  saved_step_ = state_.position.step;
  saved_at_ = Clock::now();
  lap();
}

void TrainingLoop::save_on_request() {
  save_checkpoint();
  report_.say(
      fmt::format("checkpoint of step {} saved in {}", saved_step_, parts_.directory.checkpoints().string()));
}

void TrainingLoop::save_model() {
  const ValidationHistory& validations = state_.validations;
  const int64_t step = state_.position.step;
  std::map<std::string, std::string> metadata{{"epoch", std::to_string(epoch())},
                                              {"step", std::to_string(step)}};
  if (validations.best_step == step) metadata["valid_perplexity"] = Json(validations.best).dump();
  LogitScales scales;
  if (validations.scales && validations.last_step == step) {  // they suit the weights they were found for
    scales = *validations.scales;
    metadata["root_scale"] = Json(scales.root).dump();
    metadata["cluster_scale"] = Json(scales.cluster).dump();
  }
  const ModelShape& shape = parts_.engine.shape();
  const HeadLayout& layout = parts_.engine.layout();
  const ScaledWeights weights(shape, layout, parts_.engine.weights(), scales);
  save_weights(parts_.directory.path(), shape, layout, parts_.data.vocabulary, weights.view(), metadata);
}

void TrainingLoop::finish() {
  const TrainConfig& config = parts_.config.train;
  ValidationHistory& validations = state_.validations;
  take_results(0);
  // Settings changed on resuming may end a run where no validation was due.
  bool improved = false;
  if (parts_.data.valid && validations.last_step != state_.position.step) {
    improved = validate();
    log_validation(false, true, improved);
    saved_step_ = -1;
  }
  save_checkpoint();
  if (improved) save_model();
  bool keeps_best = config.keep_weights == "best" && validations.best_step >= 0;
  if (keeps_best && !std::filesystem::exists(parts_.directory.model())) {
    report_.warn(parts_.directory.model().string() +
                 ": the weights of the best validation are gone; the last take their place");
    keeps_best = false;
  }
  if (!keeps_best) {
    parts_.engine.settle();
    save_model();
  }
  Json event{{"event", "done"}};
  event["test_perplexity"] = nullptr;
  if (parts_.data.test) {
    report_.phase("scoring the test text");
    event["test_perplexity"] =
        perplexity_of(parts_.directory.path(), *parts_.data.test, config.context, parts_.pool);
  }
  const bool any_best = validations.best_step >= 0;
  event["valid_perplexity"] = any_best ? Json(validations.best) : Json(nullptr);
  event["best_epoch"] = any_best ? Json(validations.best_epoch) : Json(nullptr);
  event["weights"] = keeps_best ? "best" : "last";
  event["reason"] = end_reason(config, state_);
  event["epochs"] = config.epochs;
  event["steps"] = state_.position.step;
  lap();
  event["seconds"] = state_.seconds;
  metrics_->append(event);
  metrics_->sync();
}

TrainingPace TrainingLoop::pace() const {
  const TrainConfig& config = parts_.config.train;
  int64_t left = std::numeric_limits<int64_t>::max();
  if (config.epochs > 0) {
    left = (config.epochs - state_.position.epoch) * windows_ - state_.position.window;
  }
  if (config.max_steps > 0) left = std::min(left, config.max_steps - state_.position.step);
  return {config.epochs, windows_, left,
          state_.sums.training_seconds / static_cast<double>(state_.position.window)};
}

int64_t TrainingLoop::epoch() const {
  return std::max<int64_t>(1, state_.position.epoch + (state_.position.window > 0 ? 1 : 0));
}

double TrainingLoop::lap() {
  const Clock::time_point now = Clock::now();
  const double seconds = std::chrono::duration<double>(now - lap_).count();
  lap_ = now;
  state_.seconds += seconds;
  state_.sums.seconds += seconds;
  return seconds;
}

void TrainingLoop::diverged(const StepPosition& at, const std::string& what) const {
  throw Error(
      ExitCode::diverged,
      fmt::format("training diverged in epoch {}, step {}: {}. The checkpoint of step {} in {} is good; a "
                  "lower train.optimizer.learning_rate or a train.clip_norm may help",
                  at.epoch + 1, at.step + 1, what, saved_step_, parts_.directory.checkpoints().string()));
}

}  // namespace hsm
