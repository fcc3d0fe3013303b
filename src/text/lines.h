#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

namespace hsm {

/// Reads lines of a plain, .gz or .zst file (told by content, not name), or of standard input ("-"), each
/// without its line end ("\n" or "\r\n"); a last line without one counts. DataError names file and reason.
class LineReader {
 public:
  explicit LineReader(const std::string& path);
  ~LineReader();
  LineReader(const LineReader&) = delete;
  LineReader& operator=(const LineReader&) = delete;

  /// False at the end. From a pipe, returns as soon as a line is there.
  bool next(std::string& line);
  [[nodiscard]] int64_t line_number() const noexcept;      ///< of the last line returned, from 1
  [[nodiscard]] const std::string& name() const noexcept;  ///< for messages: the path, or "standard input"

 private:
  struct State;
  std::unique_ptr<State> state_;
};

/// How text becomes words; kept in a model's configuration and used again for scoring and prompts.
struct TextOptions {
  bool lowercase = false;
};

/// Splits a line into tokens at ASCII white space by the conventions of docs/text.md: UTF-8 is checked,
/// `<s>` and `</s>` are dropped at the edges and refused elsewhere. Tokens point into `line` (which is
/// lower-cased in place, Unicode's simple mapping, when asked for). DataError "NAME:LINE: …", with the byte.
void split_line(std::string& line, const TextOptions& options, std::string_view name, int64_t line_number,
                std::vector<std::string_view>& tokens);

/// Paths, globs and "-" turned into a sorted list of files; UsageError for one that matches nothing.
std::vector<std::string> expand_paths(const std::vector<std::string>& patterns);

}  // namespace hsm
