#include "text/lowercase.h"

#include <locale.h>
#include <wctype.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <type_traits>

#include "base/error.h"

namespace hsm {
namespace {

struct FreeLocale {
  void operator()(locale_t locale) const { ::freelocale(locale); }
};
using Locale = std::unique_ptr<std::remove_pointer_t<locale_t>, FreeLocale>;

Locale open_unicode_locale() {
  Locale locale(::newlocale(LC_CTYPE_MASK, "C.UTF-8", locale_t{}));
  if (!locale) throw ResourceError("lower-casing needs the locale C.UTF-8, which this system doesn't have");
  return locale;
}

wint_t to_lower(wint_t character) {
  static const Locale unicode = open_unicode_locale();
  return ::towlower_l(character, unicode.get());
}

// The character at `at`, which is moved behind it.
uint32_t decode(const std::string& text, size_t& at) {
  const auto byte = [&](size_t i) { return static_cast<uint8_t>(text[i]); };
  const uint8_t first = byte(at);
  const size_t length = first < 0x80 ? 1 : first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  uint32_t character = length == 1 ? first : first & (0x7FU >> length);
  for (size_t i = 1; i < length; ++i) character = (character << 6) | (byte(at + i) & 0x3FU);
  at += length;
  return character;
}

void encode(uint32_t character, std::string& text) {
  const auto tail = [&](int shift) { text += static_cast<char>(0x80 | ((character >> shift) & 0x3F)); };
  if (character < 0x80) {
    text += static_cast<char>(character);
  } else if (character < 0x800) {
    text += static_cast<char>(0xC0 | (character >> 6));
    tail(0);
  } else if (character < 0x10000) {
    text += static_cast<char>(0xE0 | (character >> 12));
    tail(6);
    tail(0);
  } else {
    text += static_cast<char>(0xF0 | (character >> 18));
    tail(12);
    tail(6);
    tail(0);
  }
}

bool is_ascii(char c) {
  return static_cast<uint8_t>(c) < 0x80;
}

}  // namespace

void lowercase(std::string& text) {
  size_t at = 0;
  for (; at < text.size() && is_ascii(text[at]); ++at) {
    if (text[at] >= 'A' && text[at] <= 'Z') text[at] = static_cast<char>(text[at] + ('a' - 'A'));
  }
  if (at == text.size()) return;
  std::string lowered = text.substr(0, at);
  while (at < text.size()) encode(static_cast<uint32_t>(to_lower(decode(text, at))), lowered);
  text = std::move(lowered);
}

}  // namespace hsm
