#include "config/json_line.h"

#include <cmath>

#include "base/error.h"

namespace hsm {

JsonLine::JsonLine(std::string_view text, std::string_view name, int64_t line) : name_(name), line_(line) {
  try {
    object_ = Json::parse(text);
  } catch (const Json::parse_error& error) {
    fail("byte " + std::to_string(error.byte) + ": not well-formed JSON");
  } catch (const Json::exception& error) {  // as a number that no double holds
    fail("JSON that can't be read: " + std::string(error.what()));
  }
  if (!object_.is_object()) fail(show_json(object_) + " given, expected a JSON object");
}

const Json* JsonLine::find(const char* key) const {
  const auto found = object_.find(key);
  return found == object_.end() ? nullptr : &*found;
}

const std::string& JsonLine::text(const Json& value, const std::string& path) const {
  if (!value.is_string()) fail(path, value, "a string");
  return value.get_ref<const std::string&>();
}

double JsonLine::number(const Json& value, const std::string& path) const {
  if (!value.is_number() || !std::isfinite(value.get<double>())) fail(path, value, "a number");
  return value.get<double>();
}

const Json& JsonLine::list(const Json& value, const std::string& path) const {
  if (!value.is_array()) fail(path, value, "a list");
  return value;
}

std::string JsonLine::name_of(const Json& value, const std::string& path) const {
  if (!value.is_string() && !value.is_number_integer()) fail(path, value, "a string or a whole number");
  return value.dump();
}

void JsonLine::fail(const std::string& path, const Json& value, std::string_view expected) const {
  fail(path + ": " + show_json(value) + " given, expected " + std::string(expected));
}

void JsonLine::fail(const std::string& what) const {
  throw DataError(std::string(name_) + ":" + std::to_string(line_) + ": " + what);
}

std::string element_path(const std::string& path, size_t index) {
  return path + "[" + std::to_string(index) + "]";
}

}  // namespace hsm
