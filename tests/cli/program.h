#pragma once
#include <filesystem>
#include <map>
#include <string>
#include <vector>

namespace hsm::test {

/// What a run of the program left.
struct Outcome {
  int code = -1;  ///< exit code, or 128 + the signal that ended it
  std::string out;
  std::string err;
};

struct Invocation {
  std::vector<std::string> arguments;              ///< without the program's name
  std::string input;                               ///< on standard input
  std::filesystem::path folder;                    ///< to run in; empty: where the test runs
  std::map<std::string, std::string> environment;  ///< on top of the test's own
};

/// Runs hsm as a user does and waits for it. Safe to call from several threads.
Outcome run_program(const Invocation& invocation);
inline Outcome run_program(std::vector<std::string> arguments, std::string input = "") {
  return run_program(Invocation{std::move(arguments), std::move(input), {}, {}});
}

/// A folder of its own for a test, removed with the object.
class TemporaryFolder {
 public:
  TemporaryFolder();
  ~TemporaryFolder();
  TemporaryFolder(const TemporaryFolder&) = delete;
  TemporaryFolder& operator=(const TemporaryFolder&) = delete;

  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// A path in it, as text.
  [[nodiscard]] std::string operator/(const std::string& name) const { return (path_ / name).string(); }
  /// Writes a file, its folders as well, and returns its path.
  std::string write(const std::string& name, const std::string& content) const;

 private:
  std::filesystem::path path_;
};

/// Every file below a folder with its content.
std::map<std::string, std::string> snapshot(const std::filesystem::path& folder);

}  // namespace hsm::test
