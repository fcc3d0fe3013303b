#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hsm {

/// What is wrong with a configuration, collected so that all of it is told at once.
class Problems {
 public:
  /// `source` is the file's name or "--set".
  void add(std::string_view source, std::string_view path, std::string_view message);
  /// Whether something is wrong at `path` already, so that what follows from its value isn't told, too.
  [[nodiscard]] bool at(std::string_view path) const;
  /// UsageError with a line for each problem, if there are any.
  void throw_if_any() const;

 private:
  std::vector<std::string> paths_;
  std::vector<std::string> lines_;
};

}  // namespace hsm
