#include "cli/running_program.h"

#include <fcntl.h>
#include <spawn.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <stdexcept>

namespace hsm::test {

RunningProgram::RunningProgram(std::vector<std::string> arguments, const std::filesystem::path& log) {
  arguments.insert(arguments.begin(), HSM_PROGRAM);
  std::vector<char*> pointers;
  for (std::string& argument : arguments) pointers.push_back(argument.data());
  pointers.push_back(nullptr);
  posix_spawn_file_actions_t actions;
  posix_spawn_file_actions_init(&actions);
  posix_spawn_file_actions_addopen(&actions, STDIN_FILENO, "/dev/null", O_RDONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDOUT_FILENO, "/dev/null", O_WRONLY, 0);
  posix_spawn_file_actions_addopen(&actions, STDERR_FILENO, log.c_str(), O_WRONLY | O_CREAT | O_TRUNC, 0644);
  const int error = posix_spawn(&child_, HSM_PROGRAM, &actions, nullptr, pointers.data(), environ);
  posix_spawn_file_actions_destroy(&actions);
  if (error != 0) throw std::runtime_error(std::string(HSM_PROGRAM) + " can't be started");
}

RunningProgram::~RunningProgram() {
  if (!running()) return;
  send(SIGKILL);
  wait();
}

void RunningProgram::send(int signal) const {
  if (child_ > 0) ::kill(child_, signal);
}

void RunningProgram::take(int status) {
  code_ = WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
  child_ = -1;
}

bool RunningProgram::running() {
  int status = 0;
  if (child_ > 0 && ::waitpid(child_, &status, WNOHANG) == child_) take(status);
  return child_ > 0;
}

int RunningProgram::wait() {
  int status = 0;
  while (child_ > 0) {
    if (::waitpid(child_, &status, 0) == child_) {
      take(status);
    } else if (errno != EINTR) {
      throw std::runtime_error("waitpid failed");
    }
  }
  return code_;
}

}  // namespace hsm::test
