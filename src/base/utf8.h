#pragma once
#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

namespace hsm {

/// Offset of the first byte that is not part of well-formed UTF-8 (RFC 3629: no overlong forms, no
/// surrogates, nothing above U+10FFFF), or nothing when all is well.
std::optional<size_t> find_malformed_utf8(std::string_view text);

/// A text for an error message: quoted, control characters and malformed bytes as \xNN, cut after `limit`
/// bytes at a character's edge.
std::string quote(std::string_view text, size_t limit = 60);

}  // namespace hsm
