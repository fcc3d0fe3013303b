#include "config/config_file.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/file.h"
#include "base/utf8.h"
#include "config/checks.h"
#include "config/field.h"
#include "config/json_text.h"
#include "config/nearest.h"
#include "config/problems.h"

namespace hsm {
namespace {

// Paths of all fields called `key`, and of all fields.
void collect_paths(const Field& section, const std::string& path, std::string_view key,
                   std::vector<std::string>& same) {
  for (const Field& field : section.fields) {
    const std::string here = join_path(path, field.name);
    if (field.name == key) same.push_back(here);
    collect_paths(field, here, key, same);
  }
}

std::string unknown_key(const Field& section, std::string_view key) {
  std::vector<std::string> known;
  for (const Field& field : section.fields) known.push_back(field.name);
  if (const auto near = nearest_name(key, known)) return "unknown key, did you mean \"" + *near + "\"?";
  std::vector<std::string> elsewhere;
  collect_paths(config_fields(), "", key, elsewhere);
  if (!elsewhere.empty()) return "unknown key here, did you mean \"" + elsewhere.front() + "\"?";
  std::string list;
  for (const std::string& name : known) list += (list.empty() ? "" : ", ") + name;
  return "unknown key, expected one of " + list;
}

// Fills a Config from one source after the other.
class Reader {
 public:
  Reader(std::string source, std::filesystem::path folder, Config& config, GivenValues& given,
         Problems& problems)
      : source_(std::move(source)),
        folder_(std::move(folder)),
        config_(config),
        given_(given),
        problems_(problems) {}

  void read(const Field& field, const Json& json, const std::string& path) {
    if (field.is_section()) {
      read_section(field, json, path);
      return;
    }
    given_[path] = {source_, json};
    if (!field.read(json, config_, folder_)) {
      problems_.add(source_, path, show_json(json) + " given, expected " + field.words);
    }
  }

  // "path.to.key=value"
  void apply(const std::string& override_text) {
    const size_t equals = override_text.find('=');
    if (equals == std::string::npos || equals == 0) {
      problems_.add(source_, "", quote(override_text) + " given, expected path.to.key=value");
      return;
    }
    const std::string path = override_text.substr(0, equals);
    if (const Field* field = find_field(path)) {
      if (const auto json = override_value(*field, path, override_text.substr(equals + 1)))
        read(*field, *json, path);
    }
  }

 private:
  void read_section(const Field& section, const Json& json, const std::string& path) {
    if (!json.is_object()) {
      const bool may_mean_name = json.is_string() && section.find("name") != nullptr;
      problems_.add(source_, path,
                    show_json(json) + " given, expected an object" +
                        (may_mean_name ? "; did you mean " + path + ".name?" : ""));
      return;
    }
    if (section.clear) section.clear(config_);
    for (const auto& [key, value] : json.items()) {
      // Editors find the schema of a file by this key.
      if (path.empty() && key == "$schema" && value.is_string()) continue;
      if (const Field* field = section.find(key)) {
        read(*field, value, join_path(path, key));
      } else {
        problems_.add(source_, join_path(path, key), unknown_key(section, key));
      }
    }
  }

  const Field* find_field(const std::string& path) {
    const Field* field = &config_fields();
    size_t start = 0;
    while (start <= path.size()) {
      const size_t end = std::min(path.find('.', start), path.size());
      const std::string key = path.substr(start, end - start);
      const Field* next = field->find(key);
      if (next == nullptr) {
        problems_.add(source_, path,
                      field->is_section() ? unknown_key(*field, key)
                                          : "unknown key, " + path.substr(0, start - 1) + " is a value");
        return nullptr;
      }
      field = next;
      start = end + 1;
    }
    return field;
  }

  std::optional<Json> override_value(const Field& field, const std::string& path, const std::string& text) {
    const bool is_json = text.starts_with('"') || text.starts_with('[') || text.starts_with('{');
    if (field.text && !is_json && text != "null") return Json(text);
    try {
      JsonText parsed = parse_json_text(text, source_ + ": " + path);
      for (const std::string& duplicate : parsed.duplicates)
        problems_.add(source_, join_path(path, duplicate), "given twice");
      return parsed.value;
    } catch (const UsageError& error) {
      if (!is_json) return Json(text);
      problems_.add(error.what(), "", "");
      return std::nullopt;
    }
  }

  std::string source_;
  std::filesystem::path folder_;
  Config& config_;
  GivenValues& given_;
  Problems& problems_;
};

OrderedJson dump_section(const Field& section, const Config& config) {
  OrderedJson json = OrderedJson::object();
  for (const Field& field : section.fields) {
    json[field.name] = field.is_section() ? dump_section(field, config) : OrderedJson(field.write(config));
  }
  return json;
}

}  // namespace

Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides, ConfigUse use) {
  return parse_config(read_file(file), file.string(), file.parent_path(), overrides, use);
}

Config parse_config(std::string_view text, std::string_view name, const std::filesystem::path& folder,
                    std::span<const std::string> overrides, ConfigUse use) {
  const std::string source(name);
  const JsonText parsed = parse_json_text(text, source);
  Config config;
  GivenValues given;
  Problems problems;
  for (const std::string& duplicate : parsed.duplicates) problems.add(source, duplicate, "given twice");
  Reader(source, folder, config, given, problems).read(config_fields(), parsed.value, "");
  Reader from_options("--set", {}, config, given, problems);
  for (const std::string& override_text : overrides) from_options.apply(override_text);
  check_config(config, given, source, use, problems);
  problems.throw_if_any();
  return config;
}

std::string dump_config(const Config& config) {
  return dump_section(config_fields(), config).dump(2) + "\n";
}

}  // namespace hsm
