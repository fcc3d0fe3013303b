#include "base/utf8.h"

#include <array>
#include <cstdint>
#include <cstdio>

namespace hsm {
namespace {

// Length of the well-formed character at the start of `text`, or 0.
size_t character_length(std::string_view text) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(0);
  if (first < 0x80) return 1;
  size_t length = 0;
  uint8_t low = 0x80;
  uint8_t high = 0xBF;
  if (first >= 0xC2 && first <= 0xDF) {
    length = 2;
  } else if (first >= 0xE0 && first <= 0xEF) {
    length = 3;
    if (first == 0xE0) low = 0xA0;
    if (first == 0xED) high = 0x9F;
  } else if (first >= 0xF0 && first <= 0xF4) {
    length = 4;
    if (first == 0xF0) low = 0x90;
    if (first == 0xF4) high = 0x8F;
  } else {
    return 0;
  }
  if (text.size() < length || byte(1) < low || byte(1) > high) return 0;
  for (size_t i = 2; i < length; ++i) {
    if (byte(i) < 0x80 || byte(i) > 0xBF) return 0;
  }
  return length;
}

}  // namespace

std::optional<size_t> find_malformed_utf8(std::string_view text) {
  size_t at = 0;
  while (at < text.size()) {
    const size_t length = character_length(text.substr(at));
    if (length == 0) return at;
    at += length;
  }
  return std::nullopt;
}

std::string quote(std::string_view text, size_t limit) {
  std::string quoted = "\"";
  size_t at = 0;
  while (at < text.size()) {
    if (at >= limit) return quoted + "…\"";
    const size_t length = character_length(text.substr(at));
    const auto byte = static_cast<uint8_t>(text[at]);
    if (length == 0 || byte < 0x20 || byte == 0x7F) {
      std::array<char, 5> code{};
      std::snprintf(code.data(), code.size(), "\\x%02X", byte);
      quoted += code.data();
      ++at;
    } else {
      quoted += text.substr(at, length);
      at += length;
    }
  }
  return quoted + "\"";
}

}  // namespace hsm
