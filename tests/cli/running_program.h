#pragma once
#include <sys/types.h>

#include <filesystem>
#include <string>
#include <vector>

namespace hsm::test {

/// hsm in the background, so that a test can send it signals. Killed with the object if it still runs.
class RunningProgram {
 public:
  /// Standard error goes to the file `log`, standard output is dropped.
  RunningProgram(std::vector<std::string> arguments, const std::filesystem::path& log);
  ~RunningProgram();
  RunningProgram(const RunningProgram&) = delete;
  RunningProgram& operator=(const RunningProgram&) = delete;

  void send(int signal) const;
  [[nodiscard]] bool running();
  /// Exit code, or 128 + the signal that ended it.
  int wait();

 private:
  void take(int status);

  pid_t child_ = -1;
  int code_ = -1;
};

}  // namespace hsm::test
