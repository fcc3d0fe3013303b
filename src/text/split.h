#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "text/lines.h"

// What split_line() is made of, for lines that are worked in parts.
namespace hsm {

/// Where a text stands, for messages.
struct TextPlace {
  std::string_view name;
  int64_t line = 0;
  int64_t bytes_before = 0;  ///< in its line
};

/// Checks the bytes of `text`, lower-cases it in place when asked for, and splits it at ASCII white space.
void split_words(std::string& text, const TextOptions& options, const TextPlace& place,
                 std::vector<std::string_view>& words);

/// Drops `<s>` and `</s>` at the edges of a line that comes in parts, and refuses them elsewhere.
class EdgeMarkers {
 public:
  /// Takes markers out of the next part's words. DataError when words follow a marker that followed words.
  void filter(std::vector<std::string_view>& words, const TextPlace& place);
  /// Whether the line has had a word so far.
  [[nodiscard]] bool any_words() const noexcept { return any_words_; }

 private:
  bool any_words_ = false;
  std::string_view pending_;  // a marker after words: the line must end here
};

}  // namespace hsm
