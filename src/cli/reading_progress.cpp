#include "cli/reading_progress.h"

#include <unistd.h>

#include <filesystem>
#include <system_error>

#include "base/size.h"

namespace hsm::cli {

ReadingProgress::ReadingProgress(bool results_on_terminal)
    : shown_(!results_on_terminal), line_(STDERR_FILENO) {}

void ReadingProgress::start(const std::string& path) {
  std::error_code not_regular;
  total_ = path.empty() || path == "-" ? 0 : std::filesystem::file_size(path, not_regular);
  if (not_regular) total_ = 0;
}

void ReadingProgress::draw(const LineReader& reader) {
  if (!shown_ || total_ == 0 || !line_.active() || !line_.due()) return;
  const double fraction = static_cast<double>(reader.bytes_passed()) / static_cast<double>(total_);
  line_.draw(fraction, reader.name(), format_count(reader.line_number()) + " lines");
}

}  // namespace hsm::cli
