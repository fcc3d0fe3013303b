#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <type_traits>
#include <utility>
#include <vector>

#include "config/config.h"
#include "config/json_text.h"

namespace hsm {

/// A key of the configuration: a section, or a value. The tree of all of them (config_fields) is the one
/// table that parser, dump, JSON Schema and the reference in the documentation are made from.
struct Field {
  std::string name;
  std::string summary;                 ///< for the schema and the reference: a sentence or two
  std::vector<Field> fields;           ///< of a section
  std::function<void(Config&)> clear;  ///< sections that an object replaces as a whole; else empty

  // Of a value.
  bool text = false;  ///< what --set gives is a string even where it looks like another JSON value
  std::string words;  ///< what is allowed
  OrderedJson schema;
  std::function<bool(const Json& json, Config& config, const std::filesystem::path& folder)> read;
  std::function<Json(const Config& config)> write;

  [[nodiscard]] bool is_section() const noexcept { return !read; }
  /// The key of that name within a section, or null.
  [[nodiscard]] const Field* find(std::string_view key) const;
};

/// The root of the table; its fields are the sections data, vocabulary, classes and so on.
const Field& config_fields();

/// Adds fields to a section whose struct is S: `member` points to the struct's member that a key fills.
template <class S>
class SectionBuilder {
 public:
  using Access = std::function<S&(Config&)>;

  SectionBuilder(Field& field, Access access) : field_(field), access_(std::move(access)) {}

  template <class T, class Kind>
  SectionBuilder& value(std::string name, T S::*member, Kind kind, std::string summary) {
    Field field;
    field.name = std::move(name);
    field.summary = std::move(summary);
    field.text = Kind::kText;
    field.words = kind.words();
    field.schema = kind.schema();
    field.read = [access = access_, member, kind](const Json& json, Config& config,
                                                  const std::filesystem::path& folder) {
      return kind.read(json, access(config).*member, folder);
    };
    field.write = [access = access_, member, kind](const Config& config) {
      return kind.write(access(const_cast<Config&>(config)).*member);
    };
    field_.fields.push_back(std::move(field));
    return *this;
  }

  /// `describe` adds the fields of the struct that `member` is.
  template <class T>
  SectionBuilder& section(std::string name, T S::*member, std::string summary,
                          std::type_identity_t<void (*)(SectionBuilder<T>&)> describe) {
    Field field;
    field.name = std::move(name);
    field.summary = std::move(summary);
    SectionBuilder<T> builder(
        field, [access = access_, member](Config& config) -> T& { return access(config).*member; });
    describe(builder);
    field_.fields.push_back(std::move(field));
    return *this;
  }

  /// An object for this section replaces all of it by `blank` before its keys are read.
  void replaced_by(S blank) {
    field_.clear = [access = access_, blank](Config& config) { access(config) = blank; };
  }

 private:
  Field& field_;
  Access access_;
};

}  // namespace hsm
