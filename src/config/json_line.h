#pragma once
#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "config/json_text.h"

namespace hsm {

/// An object on a line of a user's data, and what to say of values in it that aren't as expected: DataError
/// "NAME:LINE: PATH: VALUE given, expected …".
class JsonLine {
 public:
  /// DataError for malformed JSON and for anything but an object.
  JsonLine(std::string_view text, std::string_view name, int64_t line);

  [[nodiscard]] const Json& object() const noexcept { return object_; }
  /// The value of a key, or null.
  [[nodiscard]] const Json* find(const char* key) const;

  /// Values as what they must be; `path` is theirs.
  [[nodiscard]] const std::string& text(const Json& value, const std::string& path) const;
  [[nodiscard]] double number(const Json& value, const std::string& path) const;
  [[nodiscard]] const Json& list(const Json& value, const std::string& path) const;
  /// A string or a whole number, as JSON.
  [[nodiscard]] std::string name_of(const Json& value, const std::string& path) const;

  [[noreturn]] void fail(const std::string& path, const Json& value, std::string_view expected) const;
  [[noreturn]] void fail(const std::string& what) const;

 private:
  std::string_view name_;
  int64_t line_;
  Json object_;
};

/// "path[index]".
std::string element_path(const std::string& path, size_t index);

}  // namespace hsm
