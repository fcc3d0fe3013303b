#include "config/schema_validator.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <regex>
#include <stdexcept>
#include <string>

namespace hsm::test {
namespace {

using Json = nlohmann::json;

bool is_type(const Json& value, const std::string& type) {
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "integer") return value.is_number() && std::floor(value.get<double>()) == value.get<double>();
  throw std::invalid_argument("type " + type);
}

using Check = std::function<bool(const Json& value, const Json& argument, const Json& schema)>;

// A keyword says nothing about values of other types than its own.
Check for_numbers(bool (*compare)(const Json&, const Json&)) {
  return [compare](const Json& value, const Json& bound, const Json&) {
    return !value.is_number() || compare(value, bound);
  };
}

bool all_properties(const Json& value, const Json& properties, const Json& schema) {
  if (!value.is_object()) return true;
  const bool open = schema.value("additionalProperties", true);
  return std::all_of(value.items().begin(), value.items().end(), [&](const auto& item) {
    return properties.contains(item.key()) ? is_valid(item.value(), properties[item.key()]) : open;
  });
}

const std::map<std::string, Check>& checks() {
  static const std::map<std::string, Check> table{
      {"type",
       [](const Json& value, const Json& types, const Json&) {
         const Json list = types.is_array() ? types : Json::array({types});
         return std::any_of(list.begin(), list.end(),
                            [&](const Json& type) { return is_type(value, type.get<std::string>()); });
       }},
      {"const", [](const Json& value, const Json& only, const Json&) { return value == only; }},
      {"enum", [](const Json& value, const Json& all,
                  const Json&) { return std::find(all.begin(), all.end(), value) != all.end(); }},
      {"minimum", for_numbers([](const Json& value, const Json& bound) { return value >= bound; })},
      {"maximum", for_numbers([](const Json& value, const Json& bound) { return value <= bound; })},
      {"exclusiveMinimum", for_numbers([](const Json& value, const Json& bound) { return value > bound; })},
      {"exclusiveMaximum", for_numbers([](const Json& value, const Json& bound) { return value < bound; })},
      {"pattern",
       [](const Json& value, const Json& pattern, const Json&) {
         return !value.is_string() ||
                std::regex_search(value.get<std::string>(), std::regex(pattern.get<std::string>()));
       }},
      {"minLength",
       [](const Json& value, const Json& least, const Json&) {
         return !value.is_string() || value.get<std::string>().size() >= least.get<size_t>();
       }},
      {"minItems", [](const Json& value, const Json& least,
                      const Json&) { return !value.is_array() || value.size() >= least.get<size_t>(); }},
      {"items",
       [](const Json& value, const Json& each, const Json&) {
         return !value.is_array() || std::all_of(value.begin(), value.end(),
                                                 [&](const Json& item) { return is_valid(item, each); });
       }},
      {"anyOf",
       [](const Json& value, const Json& some, const Json&) {
         return std::any_of(some.begin(), some.end(), [&](const Json& one) { return is_valid(value, one); });
       }},
      {"properties", all_properties},
  };
  return table;
}

}  // namespace

bool is_valid(const Json& value, const Json& schema) {
  for (const auto& [keyword, argument] : schema.items()) {
    if (keyword == "$schema" || keyword == "title" || keyword == "description" || keyword == "default" ||
        keyword == "additionalProperties") {
      continue;
    }
    const auto check = checks().find(keyword);
    if (check == checks().end()) throw std::invalid_argument("keyword " + keyword);
    if (!check->second(value, argument, schema)) return false;
  }
  return true;
}

}  // namespace hsm::test
