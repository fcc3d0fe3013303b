#include "cli/command.h"

#include <optional>
#include <string>

#include "cli/build_info.h"
#include "cli/output.h"
#include "config/nearest.h"
#include "kernels/cuda_device.h"
#include "kernels/instruction_set.h"

namespace hsm::cli {
namespace {

std::string version_text() {
  const BuildInfo info = build_info();
  const std::string cuda = kernels::cuda_compiler_version();
  std::string text = std::string("hsm ") + info.version + "\n";
  text += std::string("commit           ") + info.commit + "\n";
  text += std::string("LibTorch         ") + info.libtorch + "\n";
  text += "CUDA compiler    " + (cuda.empty() ? "none" : cuda) + "\n";
  text += std::string("C++ compiler     ") + info.compiler + "\n";
  text += std::string("instruction set  ") + kernels::name(kernels::active_instruction_set());
  return text;
}

void print(std::string text) {
  Output out("-");
  if (!text.ends_with('\n')) text += '\n';
  out.write(text);
  out.finish();
}

std::string command_name(const CLI::App& app) {
  return app.get_parent() == nullptr ? app.get_name()
                                     : command_name(*app.get_parent()) + " " + app.get_name();
}

std::vector<std::string> option_names(const CLI::App& app) {
  std::vector<std::string> names;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& name : option->get_lnames()) names.push_back("--" + name);
  }
  return names;
}

std::string hint(const std::optional<std::string>& nearest) {
  return nearest ? ", did you mean " + *nearest + "?" : "";
}

std::string see_help(const CLI::App& app) {
  return " (see " + command_name(app) + " --help)";
}

void refuse_unknown_argument(const CLI::App& app) {
  for (const std::string& argument : app.remaining()) {
    if (argument == "--") continue;
    if (!argument.starts_with('-') || argument == "-") {
      throw UsageError(argument + ": " + command_name(app) + " takes no such argument" + see_help(app));
    }
    const std::string name = argument.substr(0, argument.find('='));
    throw UsageError(name + ": unknown option of " + command_name(app) +
                     hint(nearest_name(name, option_names(app))) + see_help(app));
  }
}

// The subcommand that the arguments name, or the app itself while they name none.
const CLI::App& named_app(const CLI::App& app) {
  const auto parsed = app.get_subcommands();
  return parsed.empty() ? app : *parsed.front();
}

void parse(CLI::App& app, int argc, const char* const* argv) {
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& error) {
    if (error.get_exit_code() == 0) throw;
    throw UsageError(error.what() + see_help(named_app(app)));
  }
}

const Command& chosen_command(const CLI::App& app, const std::vector<Command>& commands) {
  std::vector<std::string> names;
  for (const Command& command : commands) {
    if (command.app->parsed()) return command;
    names.push_back(command.app->get_name());
  }
  for (const std::string& argument : app.remaining()) {
    if (argument.starts_with('-')) continue;
    throw UsageError(argument + ": unknown subcommand of hsm" + hint(nearest_name(argument, names)) +
                     see_help(app));
  }
  refuse_unknown_argument(app);
  throw UsageError("no subcommand given" + see_help(app));
}

}  // namespace

void set_up_app(CLI::App& app) {
  app.name("hsm");
  app.description(
      "Recurrent language models with very large vocabularies: training, scoring and decoding with a\n"
      "two-level hierarchical softmax.");
  app.set_help_flag("-h,--help", "Print this help and exit");
  app.set_version_flag("--version", version_text, "Print the version and what it was built with");
  app.require_subcommand(0, 1);
  app.get_formatter()->column_width(36);
  // Arguments that nothing takes are looked at below, for better messages.
  app.allow_extras();
  app.footer(
      "Results go to standard output, logs and progress to standard error.\n"
      "Exit codes: 0 done, 1 fault in hsm, 2 wrong command line or configuration, 3 wrong data or model,\n"
      "4 out of a resource, 5 training diverged, 75 stopped after a checkpoint.");
}

const Command* parse_command_line(CLI::App& app, const std::vector<Command>& commands, int argc,
                                  const char* const* argv) {
  for (const Command& command : commands) command.app->allow_extras();
  try {
    parse(app, argc, argv);
  } catch (const CLI::CallForHelp&) {
    print(app.help());
    return nullptr;
  } catch (const CLI::CallForVersion&) {
    print(version_text());
    return nullptr;
  }
  const Command& command = chosen_command(app, commands);
  refuse_unknown_argument(app);
  refuse_unknown_argument(*command.app);
  return &command;
}

}  // namespace hsm::cli
