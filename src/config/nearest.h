#pragma once
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hsm {

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
size_t edit_distance(std::string_view a, std::string_view b);

/// The known name that a misspelt or shortened one most likely means: the nearest by edit distance (the first
/// of equals), or nothing when none is near.
std::optional<std::string> nearest_name(std::string_view name, std::span<const std::string> known);

}  // namespace hsm
