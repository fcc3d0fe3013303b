#pragma once
#include <cstdio>
#include <memory>
#include <string>
#include <string_view>

namespace hsm::cli {

/// Thrown when the reader of standard output has gone away: main ends quietly then.
struct BrokenPipe {};

/// Results as a subcommand writes them: to standard output ("-") or to a file, which is emptied first.
/// ResourceError, naming the file, when that fails.
class Output {
 public:
  explicit Output(const std::string& path);

  void write(std::string_view text);
  /// Hands what was written to the reader.
  void flush();
  /// The last call: flushes and closes, so that no error goes unseen.
  void finish();

 private:
  struct Closer {
    void operator()(std::FILE* file) const noexcept {
      if (file != stdout) std::fclose(file);
    }
  };

  [[noreturn]] void fail() const;

  std::string name_;
  std::unique_ptr<std::FILE, Closer> file_;
};

}  // namespace hsm::cli
