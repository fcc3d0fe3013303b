#include "text/lines.h"

#include <cstring>

#include "text/byte_source.h"

namespace hsm {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 18;
constexpr std::string_view kByteOrderMark = "\xEF\xBB\xBF";
constexpr std::string_view kSpace = " \t\v\f\r";

}  // namespace

struct LineReader::State {
  explicit State(const std::string& path) : source(path), buffer(std::make_unique<char[]>(kBufferBytes)) {}

  // Moves the next line, or what is there of it, to the end of `line`; with `in_parts` no further than to the
  // last white space that is there, if any is. True when the line is complete.
  bool take(std::string& line, bool in_parts) {
    const std::string_view there(buffer.get() + begin, end - begin);
    const size_t newline = there.find('\n');
    if (newline != std::string_view::npos) {
      line.append(there.substr(0, newline));
      begin += newline + 1;
      return true;
    }
    const size_t space = in_parts ? there.find_last_of(kSpace) : std::string_view::npos;
    const size_t length = space == std::string_view::npos ? there.size() : space + 1;
    line.append(there.substr(0, length));
    begin += length;
    cut = space != std::string_view::npos;
    return false;
  }

  bool refill() {
    begin = end = 0;
    if (!at_end) end = source.read({buffer.get(), kBufferBytes});
    unpacked += end;
    at_end = end == 0;
    return !at_end;
  }

  bool read(std::string& line, bool in_parts, bool& last) {
    line.clear();
    last = false;
    cut = false;
    const bool starts = !in_line;
    while (!last && !cut) {
      if (begin == end && !refill()) {
        if (!in_line && line.empty()) return false;
        last = true;
        break;
      }
      in_line = true;
      last = take(line, in_parts);
    }
    in_line = !last;
    if (starts && ++line_number == 1 && line.starts_with(kByteOrderMark))
      line.erase(0, kByteOrderMark.size());
    return true;
  }

  ByteSource source;
  std::unique_ptr<char[]> buffer;  // unpacked bytes, not yet handed on: [begin, end)
  size_t begin = 0;
  size_t end = 0;
  uint64_t unpacked = 0;  // bytes that have been in the buffer
  bool at_end = false;
  int64_t line_number = 0;
  bool in_line = false;  // a line has begun and is not complete
  bool cut = false;      // the last take() ended at white space
};

LineReader::LineReader(const std::string& path) : state_(std::make_unique<State>(path)) {}
LineReader::~LineReader() = default;

bool LineReader::next(std::string& line) {
  bool last = false;
  if (!state_->read(line, false, last)) return false;
  if (line.ends_with('\r')) line.pop_back();
  return true;
}

bool LineReader::next_part(std::string& part, bool& last) {
  return state_->read(part, true, last);
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

uint64_t LineReader::bytes_passed() const noexcept {
  if (state_->unpacked == 0) return 0;
  const auto ahead = static_cast<double>(state_->end - state_->begin);
  const double share = 1 - ahead / static_cast<double>(state_->unpacked);
  return static_cast<uint64_t>(share * static_cast<double>(bytes_read()));
}

}  // namespace hsm
