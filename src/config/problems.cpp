#include "config/problems.h"

#include <algorithm>

#include "base/error.h"

namespace hsm {

void Problems::add(std::string_view source, std::string_view path, std::string_view message) {
  paths_.emplace_back(path);
  std::string line(source);
  for (const std::string_view part : {path, message}) {
    if (!part.empty()) line.append(": ").append(part);
  }
  lines_.push_back(std::move(line));
}

bool Problems::at(std::string_view path) const {
  return std::find(paths_.begin(), paths_.end(), path) != paths_.end();
}

void Problems::throw_if_any() const {
  if (lines_.empty()) return;
  std::string message;
  for (const std::string& line : lines_) message += (message.empty() ? "" : "\n") + line;
  throw UsageError(message);
}

}  // namespace hsm
