#include "cli/output.h"

#include <cerrno>
#include <cstring>

#include "base/error.h"

namespace hsm::cli {

Output::Output(const std::string& path)
    : name_(path == "-" ? "standard output" : path),
      file_(path == "-" ? stdout : std::fopen(path.c_str(), "we")) {
  if (!file_) fail();
}

void Output::write(std::string_view text) {
  if (std::fwrite(text.data(), 1, text.size(), file_.get()) != text.size()) fail();
}

void Output::flush() {
  if (std::fflush(file_.get()) != 0) fail();
}

void Output::finish() {
  flush();
  std::FILE* file = file_.release();
  if (file != stdout && std::fclose(file) != 0) fail();
}

void Output::fail() const {
  if (errno == EPIPE) throw BrokenPipe{};
  throw ResourceError(name_ + ": can't be written: " + std::strerror(errno));
}

}  // namespace hsm::cli
