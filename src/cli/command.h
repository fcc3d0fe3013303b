#pragma once
#include <CLI/CLI.hpp>
#include <functional>
#include <vector>

#include "base/error.h"

namespace hsm::cli {

/// A subcommand: how it parses (owned by the main app) and what it does then. What `run` throws becomes the
/// exit code in main.
struct Command {
  CLI::App* app = nullptr;
  std::function<ExitCode()> run;
};

// One file a subcommand. Each of these adds it with its options, kept alive by the command's `run`, and
// examples as its footer. main() calls them in the order of the help.
Command add_train(CLI::App& app);
Command add_decode(CLI::App& app);
Command add_score(CLI::App& app);
Command add_classes(CLI::App& app);
Command add_info(CLI::App& app);
Command add_completion(CLI::App& app);

/// The app without subcommands: name, --help, --version.
void set_up_app(CLI::App& app);

/// Parses the command line, prints --help or --version if that was asked for (null then), and returns the
/// subcommand to run. UsageError for anything wrong, with the nearest known name of a misspelt option.
const Command* parse_command_line(CLI::App& app, const std::vector<Command>& commands, int argc,
                                  const char* const* argv);

}  // namespace hsm::cli
