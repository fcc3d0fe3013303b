#include "config/kinds.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <regex>
#include <string_view>

#include "base/error.h"
#include "base/size.h"

namespace hsm {
namespace {

using std::filesystem::path;

constexpr const char* kSizePattern =
    "^([0-9]*[1-9][0-9]*(\\.[0-9]+)?|0\\.[0-9]*[1-9][0-9]*) *(([kKmMgGtT]([iI]?[bB])?)|[bB])?$";
constexpr const char* kDurationPattern = "^([0-9]{1,9}h)?([0-9]{1,9}m)?([0-9]{1,9}s)?$";

std::optional<int64_t> whole_number(const Json& json) {
  if (json.is_number_unsigned()) {
    const auto number = json.get<uint64_t>();
    if (number > uint64_t{kLargestInteger}) return std::nullopt;
    return static_cast<int64_t>(number);
  }
  if (json.is_number_integer()) return json.get<int64_t>();
  if (!json.is_number_float()) return std::nullopt;
  const double number = json.get<double>();
  if (number != std::floor(number) || std::abs(number) > static_cast<double>(kLargestInteger))
    return std::nullopt;
  return static_cast<int64_t>(number);
}

std::string absolute_path(const std::string& text, const path& folder) {
  if (text == "-") return text;
  const path start =
      std::filesystem::weakly_canonical(folder.empty() ? std::filesystem::current_path() : folder);
  return (start / text).lexically_normal().string();
}

bool matches(const std::string& text, const char* pattern) {
  return text.size() < 100 && std::regex_match(text, std::regex(pattern));
}

std::string number_text(double number) {
  return number == std::floor(number) && std::abs(number) < 1e15
             ? std::to_string(static_cast<int64_t>(number))
             : Json(number).dump();
}

OrderedJson any_of(OrderedJson first, OrderedJson second) {
  OrderedJson schema;
  schema["anyOf"] = OrderedJson::array({std::move(first), std::move(second)});
  return schema;
}

}  // namespace

bool BooleanKind::read(const Json& json, bool& value, const path&) const {
  if (!json.is_boolean()) return false;
  value = json.get<bool>();
  return true;
}

bool IntegerKind::read(const Json& json, int64_t& value, const path&) const {
  const auto number = whole_number(json);
  if (!number || *number > maximum || (*number < minimum && !(or_zero && *number == 0))) return false;
  value = *number;
  return true;
}

std::string IntegerKind::words() const {
  std::string text = or_zero ? "0 or an integer " : "an integer ";
  if (maximum == kLargestInteger) return text + "of at least " + std::to_string(minimum);
  return text + "from " + std::to_string(minimum) + " to " + std::to_string(maximum);
}

OrderedJson IntegerKind::schema() const {
  OrderedJson schema{{"type", "integer"}, {"minimum", minimum}, {"maximum", maximum}};
  return or_zero ? any_of({{"const", 0}}, std::move(schema)) : schema;
}

bool SeedKind::read(const Json& json, uint64_t& value, const path&) const {
  if (json.is_number_unsigned()) {
    value = json.get<uint64_t>();
    return true;
  }
  const auto number = whole_number(json);
  if (!number || *number < 0) return false;
  value = static_cast<uint64_t>(*number);
  return true;
}

std::string SeedKind::words() const {
  return "an integer from 0 to 18446744073709551615";
}

OrderedJson SeedKind::schema() const {
  return {{"type", "integer"}, {"minimum", 0}, {"maximum", std::numeric_limits<uint64_t>::max()}};
}

bool NumberKind::read(const Json& json, double& value, const path&) const {
  if (!json.is_number()) return false;
  const double number = json.get<double>();
  if (number < minimum || number > maximum) return false;
  if ((above && number == minimum) || (below && number == maximum)) return false;
  value = number;
  return true;
}

std::string NumberKind::words() const {
  if (maximum == std::numeric_limits<double>::max()) {
    return std::string("a number ") + (above ? "above " : "of at least ") + number_text(minimum);
  }
  return std::string("a number in ") + (above ? "(" : "[") + number_text(minimum) + ", " +
         number_text(maximum) + (below ? ")" : "]");
}

OrderedJson NumberKind::schema() const {
  OrderedJson schema{{"type", "number"}, {above ? "exclusiveMinimum" : "minimum", minimum}};
  if (maximum != std::numeric_limits<double>::max()) schema[below ? "exclusiveMaximum" : "maximum"] = maximum;
  return schema;
}

bool ChoiceKind::read(const Json& json, std::string& value, const path&) const {
  if (!json.is_string()) return false;
  auto name = json.get<std::string>();
  if (std::find(names.begin(), names.end(), name) == names.end()) return false;
  value = std::move(name);
  return true;
}

std::string ChoiceKind::words() const {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (i > 0) text += i + 1 == names.size() ? " or " : ", ";
    text += "\"" + names[i] + "\"";
  }
  return text;
}

OrderedJson ChoiceKind::schema() const {
  return {{"type", "string"}, {"enum", names}};
}

bool PatternKind::read(const Json& json, std::string& value, const path&) const {
  if (!json.is_string()) return false;
  auto text = json.get<std::string>();
  if (!matches(text, pattern.c_str())) return false;
  value = std::move(text);
  return true;
}

bool PathKind::read(const Json& json, std::string& value, const path& folder) const {
  if (json.is_null()) {
    value.clear();
    return true;
  }
  if (!json.is_string() || json.get_ref<const std::string&>().empty()) return false;
  value = absolute_path(json.get<std::string>(), folder);
  return true;
}

OrderedJson PathKind::schema() const {
  return {{"type", {"string", "null"}}, {"minLength", 1}};
}

bool PathListKind::read(const Json& json, std::vector<std::string>& value, const path& folder) const {
  const Json list = json.is_string() ? Json::array({json}) : json.is_null() ? Json::array() : json;
  if (!list.is_array()) return false;
  std::vector<std::string> paths;
  for (const Json& entry : list) {
    if (!entry.is_string() || entry.get_ref<const std::string&>().empty()) return false;
    paths.push_back(absolute_path(entry.get<std::string>(), folder));
  }
  value = std::move(paths);
  return true;
}

OrderedJson PathListKind::schema() const {
  const OrderedJson entry{{"type", "string"}, {"minLength", 1}};
  return any_of({{"type", {"string", "null"}}, {"minLength", 1}}, {{"type", "array"}, {"items", entry}});
}

bool IntegerListKind::read(const Json& json, std::vector<int64_t>& value, const path& folder) const {
  const Json list = json.is_array() ? json : Json::array({json});
  std::vector<int64_t> numbers(list.size());
  for (size_t i = 0; i < list.size(); ++i) {
    if (!each.read(list[i], numbers[i], folder)) return false;
  }
  if (numbers.empty()) return false;
  value = std::move(numbers);
  return true;
}

Json IntegerListKind::write(const std::vector<int64_t>& value) const {
  return value.size() == 1 ? Json(value.front()) : Json(value);
}

OrderedJson IntegerListKind::schema() const {
  return any_of(each.schema(), {{"type", "array"}, {"items", each.schema()}, {"minItems", 1}});
}

bool AutoKind::read(const Json& json, std::optional<int64_t>& value, const path& folder) const {
  if (json == "auto") {
    value.reset();
    return true;
  }
  int64_t read = 0;
  if (!number.read(json, read, folder)) return false;
  value = read;
  return true;
}

OrderedJson AutoKind::schema() const {
  return any_of({{"const", "auto"}}, number.schema());
}

bool SizeKind::read(const Json& json, uint64_t& value, const path&) const {
  uint64_t bytes = 0;
  if (const auto number = whole_number(json)) {
    bytes = *number < 0 ? 0 : static_cast<uint64_t>(*number);
  } else {
    if (!json.is_string() || !matches(json.get<std::string>(), kSizePattern)) return false;
    try {
      bytes = parse_size(json.get<std::string>(), "");
    } catch (const UsageError&) {
      return false;
    }
  }
  const bool zero = json.is_number() && json.get<double>() == 0;
  if (bytes == 0 && !(zero && or_zero)) return false;
  if (bytes > uint64_t{kLargestInteger}) return false;
  value = bytes;
  return true;
}

Json SizeKind::write(uint64_t value) const {
  if (value == 0) return 0;
  if (value % (uint64_t{1} << 30) == 0) return std::to_string(value >> 30) + "GiB";
  if (value % (uint64_t{1} << 20) == 0) return std::to_string(value >> 20) + "MiB";
  return value;
}

OrderedJson SizeKind::schema() const {
  return any_of({{"type", "string"}, {"pattern", kSizePattern}},
                {{"type", "integer"}, {"minimum", or_zero ? 0 : 1}, {"maximum", kLargestInteger}});
}

bool DurationKind::read(const Json& json, double& value, const path&) const {
  if (json.is_number() && json.get<double>() == 0) {
    value = 0;
    return true;
  }
  if (!json.is_string()) return false;
  const std::string text = json.get<std::string>();
  if (text.empty() || !matches(text, kDurationPattern)) return false;
  int64_t seconds = 0;
  const char* at = text.data();
  while (at != text.data() + text.size()) {
    int64_t number = 0;
    at = std::from_chars(at, text.data() + text.size(), number).ptr;
    seconds += number * (*at == 'h' ? 3600 : *at == 'm' ? 60 : 1);
    ++at;
  }
  value = static_cast<double>(seconds);
  return true;
}

Json DurationKind::write(double value) const {
  const auto seconds = static_cast<int64_t>(std::ceil(value));
  if (seconds == 0) return 0;
  if (seconds % 3600 == 0) return std::to_string(seconds / 3600) + "h";
  if (seconds % 60 == 0) return std::to_string(seconds / 60) + "m";
  return std::to_string(seconds) + "s";
}

OrderedJson DurationKind::schema() const {
  return any_of({{"const", 0}}, {{"type", "string"}, {"pattern", kDurationPattern}, {"minLength", 1}});
}

}  // namespace hsm
