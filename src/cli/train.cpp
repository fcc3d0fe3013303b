#include <filesystem>
#include <memory>
#include <string>

#include "base/error.h"
#include "base/signals.h"
#include "cli/command.h"
#include "cli/options.h"
#include "gpu/training_device.h"
#include "train/trainer.h"

namespace hsm::cli {
namespace {

struct Options {
  ConfigOption config;
  RuntimeOption runtime;
  std::string output;
  bool resume = false;
};

// A run that was moved still names its old place in its config.json, where --resume would start afresh.
void check_not_moved(const Options& options, const Config& config) {
  const std::filesystem::path file = std::filesystem::absolute(options.config.file);
  const std::filesystem::path folder = file.parent_path();
  std::error_code ignored;
  if (file.filename() != "config.json" || !std::filesystem::exists(folder / "checkpoints", ignored) ||
      std::filesystem::equivalent(folder, config.output.directory, ignored)) {
    return;
  }
  throw UsageError(file.string() + ": --resume: is the configuration of the run in " + folder.string() +
                   ", but output.directory is " + config.output.directory + "; add --output " +
                   folder.string() + ", or leave --resume out");
}

ExitCode run_train(const Options& options) {
  SignalRequests signals;
  ConfigOption source = options.config;
  if (!options.output.empty()) {
    source.overrides.push_back("output.directory=" + std::filesystem::absolute(options.output).string());
  }
  Config config = source.load();
  if (options.resume) check_not_moved(options, config);
  options.runtime.apply(config.runtime);
  const TrainingRequests requests{[&signals] { return signals.stop_requested(); },
                                  [&signals] { return signals.take_checkpoint_request(); }};
  const Outcome outcome = train(config, options.resume, requests, choose_training_engine(config));
  return outcome == Outcome::finished ? ExitCode::done : ExitCode::interrupted;
}

}  // namespace

Command add_train(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("train", "Train a model, or go on with a training");
  add_config(*command, options->config);
  command->add_flag(
      "--resume", options->resume,
      "Go on with the run in the output directory; start afresh where there is none, do nothing "
      "where it is finished");
  command
      ->add_option("-o,--output", options->output,
                   "Directory of the model and the run, instead of output.directory")
      ->type_name("DIR");
  add_runtime(*command, options->runtime);
  add_log_level(*command);
  command->footer(
      "SIGINT and SIGTERM save a checkpoint and end with status 75, SIGUSR1 saves one and goes on.\n"
      "\n"
      "Examples:\n"
      "  hsm train --config configs/quickstart.json\n"
      "  hsm train --config configs/ptb-small.json --output models/wide --set model.hidden=650 --set "
      "model.dropout.output=0.5\n"
      "  hsm train --config configs/ptb-small.json --resume\n"
      "  hsm train --config configs/ptb-small.json --resume --set train.epochs=20");
  return {command, [options] { return run_train(*options); }};
}

}  // namespace hsm::cli
