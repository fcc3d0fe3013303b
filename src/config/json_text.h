#pragma once
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

namespace hsm {

using Json = nlohmann::json;
using OrderedJson = nlohmann::ordered_json;

/// What JSON text holds, and the paths of keys that stand in it twice (nlohmann's parser keeps the last).
struct JsonText {
  Json value;
  std::vector<std::string> duplicates;
};

/// Parses JSON with // and /* */ comments. UsageError "NAME:LINE:COLUMN: …" for malformed text.
JsonText parse_json_text(std::string_view text, std::string_view name);

/// A value for an error message: short, on one line.
std::string show_json(const Json& value);

/// "section.key", or "key" at the root.
std::string join_path(std::string_view section, std::string_view key);

}  // namespace hsm
