#include "text/split.h"

#include "base/error.h"
#include "base/utf8.h"
#include "text/lowercase.h"
#include "text/vocabulary.h"

namespace hsm {
namespace {

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

[[noreturn]] void fail_at(const TextPlace& place, const std::string& what) {
  throw DataError(std::string(place.name) + ":" + std::to_string(place.line) + ": " + what);
}

void check_bytes(const std::string& text, const TextPlace& place) {
  const auto byte = [&](size_t at) {
    return "byte " + std::to_string(place.bytes_before + static_cast<int64_t>(at) + 1);
  };
  if (const size_t nul = text.find('\0'); nul != std::string::npos) {
    fail_at(place, byte(nul) + " is NUL, expected text");
  }
  if (const auto at = find_malformed_utf8(text)) {
    fail_at(place, byte(*at) + " is not well-formed UTF-8: " + quote(std::string_view(text).substr(*at), 8));
  }
}

}  // namespace

void split_words(std::string& text, const TextOptions& options, const TextPlace& place,
                 std::vector<std::string_view>& words) {
  check_bytes(text, place);
  if (options.lowercase) lowercase(text);
  words.clear();
  const char* at = text.data();
  const char* const end = at + text.size();
  while (true) {
    while (at != end && is_space(*at)) ++at;
    if (at == end) break;
    const char* const first = at;
    while (at != end && !is_space(*at)) ++at;
    words.emplace_back(first, static_cast<size_t>(at - first));
  }
}

void EdgeMarkers::filter(std::vector<std::string_view>& words, const TextPlace& place) {
  size_t kept = 0;
  for (const std::string_view word : words) {
    if (word == kStartOfSentence || word == kEndOfSentence) {
      if (any_words_) pending_ = word == kStartOfSentence ? kStartOfSentence : kEndOfSentence;
      continue;
    }
    if (!pending_.empty()) {
      fail_at(place, quote(pending_) + " within the line, expected it at the start or the end only");
    }
    any_words_ = true;
    words[kept++] = word;
  }
  words.resize(kept);
}

void split_line(std::string& line, const TextOptions& options, std::string_view name, int64_t line_number,
                std::vector<std::string_view>& tokens) {
  const TextPlace place{name, line_number, 0};
  split_words(line, options, place, tokens);
  EdgeMarkers().filter(tokens, place);
}

}  // namespace hsm
