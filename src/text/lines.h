#pragma once
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hsm {

/// Reads lines of a plain, .gz or .zst file (told by content, not name), or of standard input ("-"), each
/// without its line end ("\n" or "\r\n"); a last line without one counts, a byte order mark at the start of
/// the file does not. DataError names file and reason: unreadable, a damaged or a truncated archive.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. From a pipe, returns as soon as a line is there.
  bool next(std::string& line);
  /// The next line in parts that end at white space, so that one as long as a whole corpus need not be held:
  /// a part is at most as long as the read buffer (256 KiB) and a word. `last` tells that it ends the line;
  /// it may be empty then.
  bool next_part(std::string& part, bool& last);
  /// Whether a whole line has been read ahead: next() returns without waiting for more text.
  [[nodiscard]] bool line_ready() const noexcept;
  [[nodiscard]] int64_t line_number() const noexcept;      ///< of the line last returned, from 1
  [[nodiscard]] const std::string& name() const noexcept;  ///< for messages: the path, or "standard input"
  /// Bytes taken from the file so far, before unpacking.
  [[nodiscard]] uint64_t bytes_read() const noexcept;
  /// As bytes_read, without the share that was read ahead: what the lines returned so far took.
  [[nodiscard]] uint64_t bytes_passed() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// What becomes of a line of input that is malformed.
enum class BadLines {
  error,   ///< it ends the input
  report,  ///< an answer takes its place that says what is wrong, and the input goes on
};

/// How text becomes words; kept in a model's configuration and used again for scoring and prompts.
struct TextOptions {
  bool lowercase = false;
};

/// Splits a line into tokens at ASCII white space by the conventions of docs/text.md: UTF-8 is checked,
/// `<s>` and `</s>` are dropped at the edges and refused elsewhere. Tokens point into `line` (which is
/// lower-cased in place, Unicode's simple mapping, when asked for). DataError "NAME:LINE: …", with the byte
/// (from 1) where there is one.
void split_line(std::string& line, const TextOptions& options, std::string_view name, int64_t line_number,
                std::vector<std::string_view>& tokens);

/// Paths, globs and "-" turned into a list of files, each once: in the order given, the matches of a glob
/// sorted by name. UsageError for a glob that matches no file, DataError for a path that isn't there or is a
/// folder.
std::vector<std::string> expand_paths(const std::vector<std::string>& patterns);

}  // namespace hsm
