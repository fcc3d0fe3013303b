#include "text/lines.h"

#include <array>
#include <cstring>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "text/byte_source.h"
#include "text/lowercase.h"
#include "text/vocabulary.h"

namespace hsm {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";

bool is_space(char c) {
  return c == ' ' || (c >= '\t' && c <= '\r');
}

bool is_edge_marker(std::string_view token) {
  return token == kStartOfSentence || token == kEndOfSentence;
}

[[noreturn]] void fail_at(std::string_view name, int64_t line_number, const std::string& what) {
  throw DataError(std::string(name) + ":" + std::to_string(line_number) + ": " + what);
}

void check_bytes(const std::string& line, std::string_view name, int64_t line_number) {
  if (const size_t nul = line.find('\0'); nul != std::string::npos) {
    fail_at(name, line_number, "byte " + std::to_string(nul + 1) + " is NUL, expected text");
  }
  if (const auto at = find_malformed_utf8(line)) {
    fail_at(name, line_number,
            "byte " + std::to_string(*at + 1) +
                " is not well-formed UTF-8: " + quote(std::string_view(line).substr(*at), 8));
  }
}

}  // namespace

struct LineReader::State {
  explicit State(const std::string& path) : source(path), buffer(std::make_unique<char[]>(kBufferBytes)) {}

  // Moves the next line or the part of it that is there to the end of `line`. True when it is complete.
  bool take(std::string& line) {
    const char* first = buffer.get() + begin;
    const void* found = std::memchr(first, '\n', end - begin);
    const size_t length =
        found == nullptr ? end - begin : static_cast<size_t>(static_cast<const char*>(found) - first);
    line.append(first, length);
    begin += length + (found == nullptr ? 0 : 1);
    return found != nullptr;
  }

  bool refill() {
    begin = 0;
    end = source.read({buffer.get(), kBufferBytes});
    return end > 0;
  }

  ByteSource source;
  std::unique_ptr<char[]> buffer;  // unpacked bytes, not yet handed on: [begin, end)
  size_t begin = 0;
  size_t end = 0;
  int64_t line_number = 0;
  bool at_end = false;
};

LineReader::LineReader(const std::string& path) : state_(std::make_unique<State>(path)) {}
LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
  State& state = *state_;
  line.clear();
  bool complete = false;
  bool any = false;
  while (!complete && !state.at_end) {
    if (state.begin == state.end && !state.refill()) {
      state.at_end = true;
      break;
    }
    any = true;
    complete = state.take(line);
  }
  if (!any) return false;
  if (complete && line.ends_with('\r')) line.pop_back();
  if (++state.line_number == 1 && line.starts_with(kByteOrderMark)) line.erase(0, kByteOrderMark.size());
  return true;
}

bool LineReader::line_ready() const noexcept {
  const State& state = *state_;
  return state.begin != state.end &&
         std::memchr(state.buffer.get() + state.begin, '\n', state.end - state.begin);
}

int64_t LineReader::line_number() const noexcept {
  return state_->line_number;
}
const std::string& LineReader::name() const noexcept {
  return state_->source.name();
}
uint64_t LineReader::bytes_read() const noexcept {
  return state_->source.bytes_read();
}

void split_line(std::string& line, const TextOptions& options, std::string_view name, int64_t line_number,
                std::vector<std::string_view>& tokens) {
  check_bytes(line, name, line_number);
  if (options.lowercase) lowercase(line);
  tokens.clear();
  const char* at = line.data();
  const char* const end = at + line.size();
  while (true) {
    while (at != end && is_space(*at)) ++at;
    if (at == end) break;
    const char* const first = at;
    while (at != end && !is_space(*at)) ++at;
    tokens.emplace_back(first, static_cast<size_t>(at - first));
  }
  while (!tokens.empty() && is_edge_marker(tokens.back())) tokens.pop_back();
  size_t leading = 0;
  while (leading < tokens.size() && is_edge_marker(tokens[leading])) ++leading;
  tokens.erase(tokens.begin(), tokens.begin() + static_cast<std::ptrdiff_t>(leading));
  for (const std::string_view token : tokens) {
    if (is_edge_marker(token)) {
      fail_at(name, line_number,
              "\"" + std::string(token) + "\" within the line, expected it at the start or the end only");
    }
  }
}

}  // namespace hsm
