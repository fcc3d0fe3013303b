#include <string>

#include "config/config_file.h"
#include "config/field.h"

namespace hsm {
namespace {

OrderedJson section_schema(const Field& section, const Config& defaults) {
  OrderedJson properties = OrderedJson::object();
  for (const Field& field : section.fields) {
    OrderedJson schema{{"description", field.summary}};
    if (field.is_section()) {
      schema.update(section_schema(field, defaults));
    } else {
      schema.update(field.schema);
      schema["default"] = OrderedJson(field.write(defaults));
    }
    properties[field.name] = std::move(schema);
  }
  return {{"type", "object"}, {"additionalProperties", false}, {"properties", std::move(properties)}};
}

// A cell of a Markdown table.
std::string cell(std::string text) {
  for (size_t at = 0; (at = text.find_first_of("|<", at)) != std::string::npos; at += 2)
    text.insert(at, "\\");
  return text;
}

void add_rows(const Field& section, const Config& defaults, const std::string& prefix, std::string& rows) {
  for (const Field& field : section.fields) {
    const std::string path = join_path(prefix, field.name);
    if (field.is_section()) {
      rows += "| `" + path + "` | an object | | " + cell(field.summary) + " |\n";
      add_rows(field, defaults, path, rows);
    } else {
      rows += "| `" + path + "` | " + cell(field.words) + " | `" + field.write(defaults).dump() + "` | " +
              cell(field.summary) + " |\n";
    }
  }
}

}  // namespace

std::string config_schema() {
  OrderedJson schema{{"$schema", "https://json-schema.org/draft/2020-12/schema"},
                     {"title", "Configuration of hsm"}};
  const Config defaults;
  schema.update(section_schema(config_fields(), defaults));
  OrderedJson properties{
      {"$schema", {{"description", "Where editors find this schema."}, {"type", "string"}}}};
  properties.update(schema["properties"]);
  schema["properties"] = std::move(properties);
  return schema.dump(2) + "\n";
}

std::string config_reference() {
  const Config defaults;
  std::string text;
  for (const Field& section : config_fields().fields) {
    text += "### " + section.name + "\n" + section.summary + "\n\n";
    text += "| key | value | default | meaning |\n|---|---|---|---|\n";
    add_rows(section, defaults, section.name, text);
    text += "\n";
  }
  return text;
}

}  // namespace hsm
