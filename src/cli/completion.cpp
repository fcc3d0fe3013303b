#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "cli/command.h"
#include "cli/output.h"

namespace hsm::cli {
namespace {

enum class Takes { nothing, file, folder, choice, other };

/// An option or an argument as the shells see it.
struct Word {
  std::vector<std::string> names;  ///< with dashes; none for an argument
  std::string description;
  Takes takes = Takes::nothing;
  std::string choices;  ///< separated by spaces
};

struct CommandWords {
  std::string name;
  std::string description;
  std::vector<Word> words;
};

Word make_word(const CLI::Option& option) {
  Word word;
  for (const std::string& name : option.get_lnames()) word.names.push_back("--" + name);
  for (const std::string& name : option.get_snames()) word.names.push_back("-" + name);
  word.description = option.get_description();
  if (option.get_items_expected_max() == 0) return word;
  // The name of the values' type: FILE, DIR, or one that ends in a set, as in FORMAT:{text,jsonl}.
  const std::string type = option.get_type_name();
  const size_t open = type.find('{');
  word.takes = type.starts_with("FILE")    ? Takes::file
               : type.starts_with("DIR")   ? Takes::folder
               : open != std::string::npos ? Takes::choice
                                           : Takes::other;
  if (word.takes == Takes::choice) {
    word.choices = type.substr(open + 1, type.find('}') - open - 1);
    std::replace(word.choices.begin(), word.choices.end(), ',', ' ');
  }
  return word;
}

CommandWords make_command(const CLI::App& app) {
  CommandWords command{app.get_name(), app.get_description(), {}};
  for (const CLI::Option* option : app.get_options()) command.words.push_back(make_word(*option));
  return command;
}

std::string join(const std::vector<std::string>& parts, const char* between) {
  std::string text;
  for (const std::string& part : parts) text.append(text.empty() ? "" : between).append(part);
  return text;
}

// What completes an argument or the value of an option in bash.
std::string bash_values(const Word& word) {
  switch (word.takes) {
    case Takes::file:
      return "_hsm_files";
    case Takes::folder:
      return "_hsm_folders";
    case Takes::choice:
      return "_hsm_words \"" + word.choices + "\"";
    case Takes::nothing:
    case Takes::other:
      break;
  }
  return ":";
}

std::string bash_script(const std::vector<CommandWords>& commands) {
  std::vector<std::string> names;
  std::string options;
  for (const CommandWords& command : commands) {
    if (!command.name.empty() && command.name != "hsm") names.push_back(command.name);
    std::vector<std::string> words;
    std::string values;
    std::string arguments = ":";
    for (const Word& word : command.words) {
      words.insert(words.end(), word.names.begin(), word.names.end());
      if (word.names.empty()) arguments = bash_values(word);
      if (!word.names.empty() && word.takes != Takes::nothing) {
        values += "        " + join(word.names, "|") + ") " + bash_values(word) + "; return ;;\n";
      }
    }
    options += "    " + command.name + ")\n      case $previous in\n" + values + "      esac\n" +
               "      case $current in -*) _hsm_words \"" + join(words, " ") + "\" ;; *) " + arguments +
               " ;; esac ;;\n";
  }
  return "# bash completion of hsm; zsh reads it after: autoload -U bashcompinit && bashcompinit\n"
         "_hsm_words() { local IFS=$' \\n'; COMPREPLY=($(compgen -W \"$1\" -- \"$current\")); }\n"
         "_hsm_files() { local IFS=$'\\n'; COMPREPLY=($(compgen -f -- \"$current\")); }\n"
         "_hsm_folders() { local IFS=$'\\n'; COMPREPLY=($(compgen -d -- \"$current\")); }\n"
         "_hsm() {\n"
         "  local current=${COMP_WORDS[COMP_CWORD]} previous=${COMP_WORDS[COMP_CWORD-1]} command=hsm\n"
         "  COMPREPLY=()\n"
         "  [ \"$COMP_CWORD\" -gt 1 ] && command=${COMP_WORDS[1]}\n"
         "  case $command in\n" +
         options + "  esac\n  [ \"$command\" != hsm ] || case $current in -*) ;; *) _hsm_words \"" +
         join(names, " ") + "\" ;; esac\n}\ncomplete -o filenames -F _hsm hsm\n";
}

// A text in single quotes; fish and bash agree on what needs escaping there.
std::string quoted(const std::string& text) {
  std::string result = "'";
  for (const char c : text) {
    if (c == '\'' || c == '\\') result += '\\';
    result += c;
  }
  return result + "'";
}

std::string fish_script(const std::vector<CommandWords>& commands) {
  std::string script = "# fish completion of hsm\ncomplete -c hsm -f\n";
  for (const CommandWords& command : commands) {
    const bool is_main = command.name == "hsm";
    const std::string condition =
        is_main ? " -n __fish_use_subcommand" : " -n '__fish_seen_subcommand_from " + command.name + "'";
    if (!is_main) {
      script += "complete -c hsm -n __fish_use_subcommand -a " + command.name + " -d " +
                quoted(command.description) + "\n";
    }
    for (const Word& word : command.words) {
      script += "complete -c hsm" + condition;
      for (const std::string& name : word.names) {
        script += name.starts_with("--") ? " -l " + name.substr(2) : " -s " + name.substr(1);
      }
      const bool has_name = !word.names.empty();
      if (word.takes == Takes::file || word.takes == Takes::folder) script += has_name ? " -r -F" : " -F";
      if (word.takes == Takes::choice)
        script += std::string(has_name ? " -x" : "") + " -a " + quoted(word.choices);
      if (word.takes == Takes::other) script += " -x";
      script += " -d " + quoted(word.description) + "\n";
    }
  }
  return script;
}

ExitCode run_completion(const CLI::App& app, const std::string& shell) {
  std::vector<CommandWords> commands{make_command(app)};
  for (const CLI::App* command : app.get_subcommands({})) commands.push_back(make_command(*command));
  Output out("-");
  if (shell == "zsh") out.write("autoload -U +X bashcompinit && bashcompinit\n");
  out.write(shell == "fish" ? fish_script(commands) : bash_script(commands));
  out.finish();
  return ExitCode::done;
}

}  // namespace

Command add_completion(CLI::App& app) {
  auto shell = std::make_shared<std::string>();
  CLI::App* command =
      app.add_subcommand("completion", "Print a script that teaches a shell to complete hsm's options");
  command->add_option("shell", *shell, "Which shell")
      ->type_name("SHELL")
      ->check(CLI::IsMember({"bash", "zsh", "fish"}))
      ->required();
  command->footer(
      "Examples:\n"
      "  source <(hsm completion bash)\n"
      "  hsm completion fish > ~/.config/fish/completions/hsm.fish");
  return {command, [&app, shell] { return run_completion(app, *shell); }};
}

}  // namespace hsm::cli
