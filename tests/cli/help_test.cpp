#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <nlohmann/json.hpp>
#include <regex>
#include <sstream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "cli/program.h"
#include "config/config_file.h"

namespace hsm {
namespace {

using test::Outcome;
using test::run_program;
using testing::HasSubstr;
using testing::StartsWith;

// Names below "Subcommands:" in the help.
std::vector<std::string> subcommands() {
  std::istringstream help(run_program({"--help"}).out);
  std::vector<std::string> names;
  bool listed = false;
  for (std::string line; std::getline(help, line);) {
    if (listed && line.starts_with("  ") && line[2] != ' ')
      names.push_back(line.substr(2, line.find(' ', 2) - 2));
    listed = line == "Subcommands:" || (listed && !line.empty());
  }
  return names;
}

TEST(Help, ListsTheSubcommands) {
  const Outcome help = run_program({"--help"});
  EXPECT_EQ(help.code, 0);
  EXPECT_EQ(help.err, "");
  EXPECT_THAT(subcommands(),
              testing::IsSupersetOf({"train", "decode", "score", "classes", "info", "completion"}));
}

TEST(Help, EachSubcommandShowsExamples) {
  for (const std::string& name : subcommands()) {
    SCOPED_TRACE(name);
    const Outcome help = run_program({name, "--help"});
    EXPECT_EQ(help.code, 0);
    EXPECT_EQ(help.err, "");
    EXPECT_THAT(help.out, HasSubstr("Usage: hsm " + name));
    const size_t examples = help.out.find("Examples:\n");
    ASSERT_NE(examples, std::string::npos);
    EXPECT_THAT(help.out.substr(examples), HasSubstr("hsm " + name + " "));
    EXPECT_EQ(run_program({name, "-h"}).out, help.out);
  }
}

TEST(Help, OptionsHaveOneMeaningEverywhere) {
  std::map<std::string, std::string> types;  // of a shared option's value
  for (const std::string& name : subcommands()) {
    const std::string help = run_program({name, "--help"}).out;
    for (const char* option :
         {"--model", "--config", "--device", "--threads", "--memory-budget", "--log-level", "--set"}) {
      std::smatch match;
      if (!std::regex_search(help, match, std::regex("\\n  (?:-\\w,)?" + std::string(option) + " (\\S+)")))
        continue;
      const std::string type = match[1];
      EXPECT_EQ(types.emplace(option, type).first->second, type) << option << " of hsm " << name;
    }
  }
  EXPECT_EQ(types["--log-level"], "LEVEL");
}

TEST(Help, VersionNamesWhatItWasBuiltWith) {
  const Outcome version = run_program({"--version"});
  EXPECT_EQ(version.code, 0);
  EXPECT_THAT(version.out, StartsWith("hsm "));
  for (const char* part : {"\ncommit ", "\nLibTorch ", "\nCUDA compiler ", "\ninstruction set "}) {
    EXPECT_THAT(version.out, HasSubstr(part));
  }
  test::Invocation portable{{"--version"}, "", {}, {{"HSM_INSTRUCTION_SET", "portable"}}};
  EXPECT_THAT(run_program(portable).out, HasSubstr("instruction set  portable"));
}

TEST(Help, BashCompletesCommandsOptionsAndValues) {
  if (std::system("bash -c true") != 0) GTEST_SKIP() << "bash is not installed";
  const test::TemporaryFolder folder;
  const std::string script = folder.write("completion.bash", run_program({"completion", "bash"}).out);
  folder.write("models/x", "");
  const std::string test_script = folder.write("test.bash", R"sh(
cd "$(dirname "$1")" && . "$1"
complete_line() { COMP_WORDS=("$@"); COMP_CWORD=$(($# - 1)); COMPREPLY=(); _hsm; echo "${COMPREPLY[*]}"; }
complete_line hsm inf
complete_line hsm --vers
complete_line hsm info --ver
complete_line hsm info --format ""
complete_line hsm info --model mod
complete_line hsm completion z
)sh");
  const std::string command = "bash '" + test_script + "' '" + script + "' > '" + (folder / "result") + "'";
  ASSERT_EQ(std::system(command.c_str()), 0);
  EXPECT_EQ(read_file(folder / "result"), "info\n--version\n--verify\ntext jsonl\nmodels\nzsh\n");
}

TEST(Help, CompletionKnowsEverySubcommand) {
  for (const char* shell : {"bash", "zsh", "fish"}) {
    const std::string script = run_program({"completion", shell}).out;
    for (const std::string& name : subcommands()) EXPECT_THAT(script, HasSubstr(name)) << shell;
  }
}

TEST(Documentation, ListsEveryExitCode) {
  const std::string text = read_file(std::filesystem::path(HSM_SOURCE_DIR) / "docs" / "exit-codes.md");
  for (const ExitCode code : {ExitCode::done, ExitCode::fault, ExitCode::usage, ExitCode::data,
                              ExitCode::resource, ExitCode::diverged, ExitCode::interrupted}) {
    EXPECT_THAT(text, HasSubstr("| " + std::to_string(static_cast<int>(code)) + " | "));
  }
}

TEST(Documentation, ListsEveryKeyOfTheConfiguration) {
  const std::string text = read_file(std::filesystem::path(HSM_SOURCE_DIR) / "docs" / "configuration.md");
  const auto keys = nlohmann::json::parse(dump_config(Config{})).flatten();
  for (const auto& [pointer, value] : keys.items()) {
    std::string path = pointer.substr(1);
    std::replace(path.begin(), path.end(), '/', '.');
    EXPECT_THAT(text, HasSubstr("`" + path + "`"));
  }
}

}  // namespace
}  // namespace hsm
