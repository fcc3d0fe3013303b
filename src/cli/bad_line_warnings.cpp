#include "cli/bad_line_warnings.h"

#include <spdlog/spdlog.h>

#include <utility>

#include "base/size.h"

namespace hsm::cli {
namespace {

constexpr int64_t kShownLines = 10;

}  // namespace

BadLineWarnings::BadLineWarnings(std::string input) : input_(std::move(input)) {}

void BadLineWarnings::take(std::string_view error) {
  if (++count_ <= kShownLines) spdlog::warn("{}", error);
}

void BadLineWarnings::summarise() const {
  if (count_ > kShownLines) {
    spdlog::warn("{}: {} malformed lines, of which the first {} are shown", input_, format_count(count_),
                 kShownLines);
  }
}

}  // namespace hsm::cli
