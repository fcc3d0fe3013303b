#pragma once
#include <stdexcept>
#include <string>

namespace hsm {

/// Exit codes of the program, documented in docs/exit-codes.md.
enum class ExitCode : int {
  done = 0,
  fault = 1,         ///< a fault in the program itself
  usage = 2,         ///< wrong command line or configuration
  data = 3,          ///< unreadable or malformed data, vocabulary or model
  resource = 4,      ///< out of a resource: memory budget, device memory, disk
  diverged = 5,      ///< training diverged
  interrupted = 75,  ///< stopped by a signal after saving a checkpoint
};

/// An error that a user can act on. The message names file, place, value and what was expected;
/// only main turns the code into the process's exit status.
class Error : public std::runtime_error {
 public:
  Error(ExitCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  [[nodiscard]] ExitCode code() const noexcept { return code_; }

 private:
  ExitCode code_;
};

struct UsageError : Error {
  explicit UsageError(const std::string& message) : Error(ExitCode::usage, message) {}
};
struct DataError : Error {
  explicit DataError(const std::string& message) : Error(ExitCode::data, message) {}
};
struct ResourceError : Error {
  explicit ResourceError(const std::string& message) : Error(ExitCode::resource, message) {}
};

}  // namespace hsm
