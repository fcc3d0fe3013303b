#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hsm::cli {

/// Warns of the first malformed lines of an input one by one, and of many in one sentence at the end.
class BadLineWarnings {
 public:
  /// `input` names the input.
  explicit BadLineWarnings(std::string input);

  void take(std::string_view error);
  /// After the last line.
  void summarise() const;

 private:
  std::string input_;
  int64_t count_ = 0;
};

}  // namespace hsm::cli
