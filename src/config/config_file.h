#pragma once
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

#include "config/config.h"

namespace hsm {

/// What a configuration is read for: training can do without neither data.train nor output.directory, nor
/// without data.valid where something follows from validations.
enum class ConfigUse { any, training };

/// Reads a configuration file, applies `overrides` ("path.to.key=value", the value JSON or a bare string)
/// in order, and checks everything. Relative paths in the file are taken from its folder, those in
/// overrides from the working directory; all are absolute in the result ("-" stays). UsageError listing every
/// problem at once, a line each: file (or --set), JSON path, value, what is allowed, and for an unknown key
/// the nearest known one. DataError when the file can't be read.
Config load_config(const std::filesystem::path& file, std::span<const std::string> overrides = {},
                   ConfigUse use = ConfigUse::any);

/// As load_config, for text; `name` stands for the file in messages, `folder` is where its paths start.
Config parse_config(std::string_view text, std::string_view name, const std::filesystem::path& folder,
                    std::span<const std::string> overrides = {}, ConfigUse use = ConfigUse::any);

/// The whole configuration as JSON, defaults filled in; parse_config of it gives the same again.
std::string dump_config(const Config& config);

/// JSON Schema (draft 2020-12) made from the same table as the parser.
std::string config_schema();

/// The keys with their values, defaults and meanings as Markdown tables, one a section, from the same table.
std::string config_reference();

}  // namespace hsm
