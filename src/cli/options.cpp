#include "cli/options.h"

#include "base/available_threads.h"
#include "base/error.h"
#include "base/log.h"
#include "base/size.h"
#include "config/config_file.h"
#include "kernels/cuda_device.h"

namespace hsm::cli {

void add_log_level(CLI::App& app) {
  app.add_option_function<std::string>(
         "--log-level", [](const std::string& level) { set_up_logging(level); },
         "trace, debug, info (default), warning, error or off")
      ->type_name("LEVEL");
}

std::filesystem::path ModelOption::directory() const {
  if (!model.empty()) return model;
  if (config.empty())
    throw UsageError("--model DIR is missing (or --config FILE, whose output.directory it is)");
  std::string folder = load_config(config).output.directory;
  if (folder.empty()) throw UsageError(config + ": output.directory: missing, expected the model directory");
  return folder;
}

void add_model(CLI::App& app, ModelOption& option) {
  auto* model = app.add_option("-m,--model", option.model, "Model directory")->type_name("DIR");
  app.add_option("--config", option.config, "Configuration file: its output.directory is the model directory")
      ->type_name("FILE")
      ->excludes(model);
}

Config ConfigOption::load() const {
  if (file.empty()) throw UsageError("--config FILE is missing");
  return load_config(file, overrides, ConfigUse::training);
}

void add_config(CLI::App& app, ConfigOption& option) {
  app.add_option("-c,--config", option.file, "Configuration file (docs/configuration.md)")->type_name("FILE");
  app.add_option("--set", option.overrides,
                 "Set a value of the configuration, such as train.epochs=3; repeatable")
      ->type_name("KEY=VALUE")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
}

void RuntimeOption::apply(RuntimeConfig& config) const {
  if (device) config.device = *device;
  if (threads) config.threads = *threads;
}

int RuntimeOption::thread_count() const {
  return threads.value_or(0) == 0 ? available_threads() : static_cast<int>(*threads);
}

void add_runtime(CLI::App& app, RuntimeOption& option) {
  app.add_option_function<std::string>(
         "--device",
         [&option](const std::string& device) {
           kernels::choose_device(device);
           option.device = device;
         },
         "auto, cpu, cuda or cuda:N")
      ->type_name("DEVICE");
  add_threads(app, option);
}

void add_threads(CLI::App& app, RuntimeOption& option) {
  app.add_option_function<int64_t>(
         "--threads", [&option](int64_t threads) { option.threads = threads; },
         "Threads on the CPU; 0: as many as the process may use")
      ->type_name("N")
      ->check(CLI::Range(0, 4096));
}

void add_memory_budget(CLI::App& app, std::optional<uint64_t>& bytes, const std::string& description) {
  app.add_option_function<std::string>(
         "--memory-budget",
         [&bytes](const std::string& text) { bytes = parse_size(text, "--memory-budget"); }, description)
      ->type_name("SIZE");
}

void add_output(CLI::App& app, std::string& path) {
  app.add_option("-o,--output", path, "File for the results instead of standard output")->type_name("FILE");
}

void add_bad_lines(CLI::App& app, BadLines& bad_lines) {
  app.add_option_function<std::string>(
         "--on-bad-line",
         [&bad_lines](const std::string& name) {
           bad_lines = name == "report" ? BadLines::report : BadLines::error;
         },
         "error: a malformed line ends the run; report: an answer says what is wrong, and the run goes on")
      ->type_name("WHAT")
      ->check(CLI::IsMember({"error", "report"}))
      ->default_str("error");
}

void add_format(CLI::App& app, std::string& format, const std::vector<std::string>& names) {
  app.add_option("--format", format, "How results are written")
      ->type_name("FORMAT")
      ->check(CLI::IsMember(names))
      ->capture_default_str();
}

}  // namespace hsm::cli
