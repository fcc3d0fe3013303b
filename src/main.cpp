#include <csignal>
#include <exception>
#include <iostream>
#include <new>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/log.h"
#include "cli/command.h"
#include "cli/output.h"

namespace {

// Each line of a message names the program, as messages of several lines are several problems.
void complain(std::string_view message) {
  std::string text;
  while (!message.empty()) {
    const size_t end = std::min(message.find('\n'), message.size());
    text.append("hsm: ").append(message.substr(0, end)).append("\n");
    message.remove_prefix(std::min(end + 1, message.size()));
  }
  std::cerr << text << std::flush;
}

hsm::ExitCode run(int argc, char** argv) {
  using namespace hsm::cli;
  hsm::set_up_logging("info");
  CLI::App app;
  set_up_app(app);
  // clang-format off
  const std::vector<Command> commands{
      add_train(app),
      add_decode(app),
      add_score(app),
      add_classes(app),
      add_info(app),
      add_completion(app),
  };
  // clang-format on
  const Command* command = parse_command_line(app, commands, argc, argv);
  return command == nullptr ? hsm::ExitCode::done : command->run();
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGXFSZ, SIG_IGN);  // so that a limit on file sizes shows as a failed write, like a full disk
  std::signal(SIGPIPE, SIG_IGN);  // seen as an error of the write, so that a lost log doesn't end a training
  hsm::ExitCode code = hsm::ExitCode::fault;
  try {
    code = run(argc, argv);
  } catch (const hsm::cli::BrokenPipe&) {
    code = hsm::ExitCode::done;
  } catch (const hsm::Error& error) {
    complain(error.what());
    code = error.code();
  } catch (const std::bad_alloc&) {
    complain("out of memory");
    code = hsm::ExitCode::resource;
  } catch (const std::exception& error) {
    complain(std::string("internal error: ") + error.what());
  }
  return static_cast<int>(code);
}
