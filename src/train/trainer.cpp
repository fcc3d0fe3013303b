#include "train/trainer.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/fmt/ranges.h>
#include <spdlog/spdlog.h>

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/size.h"
#include "config/config_file.h"
#include "train/reading_report.h"
#include "train/resume_settings.h"

namespace hsm {
namespace {

/// True when nothing is left to do: the last line of the metrics says so, the settings ask for no more, and
/// the model is there.
bool is_finished(const Config& config, const RunDirectory& directory, const TrainingState& state) {
  const auto event = last_event(directory.metrics());
  return event && event->value("event", "") == "done" && !end_reason(config.train, state).empty() &&
         std::filesystem::exists(directory.model());
}

/// True when a limit (0: none) lets training go on for longer than before.
bool asks_for_more(const TrainConfig& now, const TrainConfig& before) {
  const auto larger = [](auto limit, auto old) { return old != 0 && (limit == 0 || limit > old); };
  return larger(now.epochs, before.epochs) || larger(now.max_steps, before.max_steps) ||
         larger(now.max_time, before.max_time);
}

/// A run whose checkpoints are gone can't go on, but it may be finished.
bool is_finished_without_checkpoints(const Config& config, const RunDirectory& directory) {
  if (!std::filesystem::exists(directory.model())) return false;
  const auto event = last_event(directory.metrics());
  const bool done = event && event->value("event", "") == "done";
  if (done && !asks_for_more(config.train, load_config(directory.config()).train)) return true;
  throw UsageError(directory.path().string() +
                   ": --resume: a model is there, but no checkpoint to go on from; train into another "
                   "output.directory, or remove this one");
}

void warn_of_idle_dropout(const ModelConfig& model) {
  if (model.dropout.hidden == 0 || model.hidden.size() > 1) return;
  spdlog::warn("model.dropout.hidden: {} does nothing, as it is between layers and there is one",
               model.dropout.hidden);
}

void describe(const ModelShape& shape, const HeadLayout& layout) {
  spdlog::info("{} of {} layers ({}), {} words in {} clusters and a shortlist of {}, {} parameters",
               cell_name(shape.cell), shape.hidden.size(), fmt::join(shape.hidden, ", "),
               format_count(shape.words), format_count(shape.clusters), format_count(layout.shortlist()),
               format_count(shape.parameter_count()));
}

Outcome train_in(const RunDirectory& directory, const Config& config, bool resume,
                 const TrainingRequests& requests, const TrainingEngineFactory& make_engine) {
  CheckpointStore checkpoints(directory.checkpoints(), config.train.keep_checkpoints);
  const std::optional<Checkpoint> checkpoint = resume ? checkpoints.load_newest() : std::nullopt;
  std::vector<std::string> warnings;
  if (checkpoint) {
    warnings = check_resume_settings(load_config(directory.config()), config, directory.config());
  }
  if (checkpoint ? is_finished(config, directory, checkpoint->state)
                 : is_finished_without_checkpoints(config, directory)) {
    const std::string reason = checkpoint ? end_reason(config.train, checkpoint->state) : "epochs";
    spdlog::info("{}: the run is finished; a larger train.{} would go on", directory.path().string(), reason);
    return Outcome::finished;
  }
  for (const std::string& warning : warnings) spdlog::warn("{}", warning);
  make_directories(directory.checkpoints());
  const TrainingData data = checkpoint ? reopen_data(config, directory, checkpoint->state, requests.stop)
                                       : prepare_data(config, directory, requests.stop);
  ThreadPool pool = make_pool(config);
  warn_of_idle_dropout(config.model);
  const ModelShape shape = make_shape(config.model, data.vocabulary.size(), data.layout.clusters());
  describe(shape, data.layout);
  const auto engine = make_engine(config, shape, data.layout, pool);
  TrainingLoop loop({config, directory, data, *engine, checkpoints, pool});
  // Settings are written once they have proved to work, so that those that fail can be mended.
  if (checkpoint) {
    loop.resume(*checkpoint);
    write_file(directory.config(), dump_config(config));
  } else {
    save_words(data, directory);
    write_file(directory.config(), dump_config(config));
    loop.start();
  }
  return loop.run(requests);
}

}  // namespace

Outcome train(const Config& config, bool resume, const TrainingRequests& requests,
              const TrainingEngineFactory& make_engine) {
  const RunDirectory directory(config.output.directory);
  if (!resume && directory.holds_run()) {
    throw UsageError(directory.path().string() +
                     ": holds a run already; --resume goes on with it, or choose another output.directory");
  }
  try {
    return train_in(directory, config, resume, requests, make_engine);
  } catch (const ReadingStopped&) {
    return Outcome::stopped;  // nothing is trained yet: resuming reads again
  }
}

}  // namespace hsm
