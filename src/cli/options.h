#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>

#include "config/config.h"
#include "text/lines.h"

namespace hsm::cli {

// Options that several subcommands have, with one name and one meaning everywhere.

/// --log-level LEVEL: takes effect as it is parsed. Every subcommand has it.
void add_log_level(CLI::App& app);

/// --model DIR, or --config FILE, whose output.directory is the model directory.
struct ModelOption {
  std::string model;
  std::string config;

  /// UsageError when neither was given.
  [[nodiscard]] std::filesystem::path directory() const;
};
void add_model(CLI::App& app, ModelOption& option);

/// --config FILE and --set path.to.key=value.
struct ConfigOption {
  std::string file;
  std::vector<std::string> overrides;

  /// The configuration, with what training needs.
  [[nodiscard]] Config load() const;
};
void add_config(CLI::App& app, ConfigOption& option);

/// --device and --threads; what is not given comes from the configuration, if the subcommand has one.
struct RuntimeOption {
  std::optional<std::string> device;
  std::optional<int64_t> threads;

  /// Puts what was given into `config`.
  void apply(RuntimeConfig& config) const;
  /// Threads for a subcommand without a configuration.
  [[nodiscard]] int thread_count() const;
};
/// --device is checked as it is parsed: UsageError for one that this build or machine doesn't have.
void add_runtime(CLI::App& app, RuntimeOption& option);
/// --threads alone.
void add_threads(CLI::App& app, RuntimeOption& option);

/// --memory-budget SIZE, in bytes.
void add_memory_budget(CLI::App& app, std::optional<uint64_t>& bytes, const std::string& description);

/// --output FILE: `path` should be "-" (standard output) before.
void add_output(CLI::App& app, std::string& path);

/// --on-bad-line error|report.
void add_bad_lines(CLI::App& app, BadLines& bad_lines);

/// --format, one of `names`; `format` holds the default.
void add_format(CLI::App& app, std::string& format, const std::vector<std::string>& names);

}  // namespace hsm::cli
