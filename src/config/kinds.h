#pragma once
#include <cstdint>
#include <filesystem>
#include <limits>
#include <optional>
#include <string>
#include <vector>

#include "config/json_text.h"

namespace hsm {

// Kinds of values. Each kind reads a JSON value (false when it isn't allowed), writes one so that reading
// gives the same again, describes itself in words ("expected …") and as JSON Schema. `kText`: what --set
// gives is taken as a string even where it looks like another JSON value. `folder` is where relative paths
// start.

struct BooleanKind {
  static constexpr bool kText = false;
  bool read(const Json& json, bool& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(bool value) const { return value; }
  [[nodiscard]] std::string words() const { return "true or false"; }
  [[nodiscard]] OrderedJson schema() const { return {{"type", "boolean"}}; }
};

/// The largest integer that every reader of JSON keeps exactly.
inline constexpr int64_t kLargestInteger = (int64_t{1} << 53) - 1;

/// An integer in [minimum, maximum]; 1e6 and 3.0 are integers, too, as JSON Schema has it.
struct IntegerKind {
  static constexpr bool kText = false;
  int64_t minimum = 0;
  int64_t maximum = kLargestInteger;
  bool or_zero = false;  ///< 0 is allowed below the minimum
  bool read(const Json& json, int64_t& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(int64_t value) const { return value; }
  [[nodiscard]] std::string words() const;
  [[nodiscard]] OrderedJson schema() const;
};

/// Any unsigned integer of 64 bits.
struct SeedKind {
  static constexpr bool kText = false;
  bool read(const Json& json, uint64_t& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(uint64_t value) const { return value; }
  [[nodiscard]] std::string words() const;
  [[nodiscard]] OrderedJson schema() const;
};

/// A number between two bounds, each either within or just outside.
struct NumberKind {
  static constexpr bool kText = false;
  double minimum = 0;
  double maximum = std::numeric_limits<double>::max();
  bool above = false;  ///< the minimum itself is not allowed
  bool below = false;  ///< the maximum itself is not allowed
  bool read(const Json& json, double& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(double value) const { return value; }
  [[nodiscard]] std::string words() const;
  [[nodiscard]] OrderedJson schema() const;
};

struct ChoiceKind {
  static constexpr bool kText = true;
  std::vector<std::string> names;
  bool read(const Json& json, std::string& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::string& value) const { return value; }
  [[nodiscard]] std::string words() const;
  [[nodiscard]] OrderedJson schema() const;
};

/// A string that matches a regular expression (the common subset of ECMAScript's and JSON Schema's).
struct PatternKind {
  static constexpr bool kText = true;
  std::string pattern;
  std::string meaning;
  bool read(const Json& json, std::string& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::string& value) const { return value; }
  [[nodiscard]] std::string words() const { return meaning; }
  [[nodiscard]] OrderedJson schema() const { return {{"type", "string"}, {"pattern", pattern}}; }
};

/// A path, or null for none (an empty string in memory).
struct PathKind {
  static constexpr bool kText = true;
  bool read(const Json& json, std::string& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::string& value) const { return value.empty() ? Json() : Json(value); }
  [[nodiscard]] std::string words() const { return "a path or null"; }
  [[nodiscard]] OrderedJson schema() const;
};

/// A path, a glob, "-", or a list of them; null or an empty list for none.
struct PathListKind {
  static constexpr bool kText = true;
  bool read(const Json& json, std::vector<std::string>& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::vector<std::string>& value) const { return value; }
  [[nodiscard]] std::string words() const { return "a path, a glob, \"-\" or a list of them"; }
  [[nodiscard]] OrderedJson schema() const;
};

/// An integer, or a list of them that is not empty.
struct IntegerListKind {
  static constexpr bool kText = false;
  IntegerKind each;
  bool read(const Json& json, std::vector<int64_t>& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::vector<int64_t>& value) const;
  [[nodiscard]] std::string words() const { return each.words() + ", or a list of them"; }
  [[nodiscard]] OrderedJson schema() const;
};

/// An integer, or "auto" (nothing in memory).
struct AutoKind {
  static constexpr bool kText = false;
  IntegerKind number;
  bool read(const Json& json, std::optional<int64_t>& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(const std::optional<int64_t>& value) const {
    return value ? Json(*value) : Json("auto");
  }
  [[nodiscard]] std::string words() const { return number.words() + " or \"auto\""; }
  [[nodiscard]] OrderedJson schema() const;
};

/// Bytes: a string such as "256MiB", or a number.
struct SizeKind {
  static constexpr bool kText = false;
  bool or_zero = false;  ///< 0 is allowed, as for "no limit"
  bool read(const Json& json, uint64_t& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(uint64_t value) const;
  [[nodiscard]] std::string words() const {
    return std::string("a size of at least 1 byte such as \"256MiB\", \"2GB\" or 4096") +
           (or_zero ? ", or 0" : "");
  }
  [[nodiscard]] OrderedJson schema() const;
};

/// Whole seconds in memory, a string such as "90m", "1h30m" or "45s" in JSON; 0 for none.
struct DurationKind {
  static constexpr bool kText = false;
  bool read(const Json& json, double& value, const std::filesystem::path& folder) const;
  [[nodiscard]] Json write(double value) const;
  [[nodiscard]] std::string words() const { return "a duration such as \"90m\", \"1h30m\" or \"45s\", or 0"; }
  [[nodiscard]] OrderedJson schema() const;
};

}  // namespace hsm
