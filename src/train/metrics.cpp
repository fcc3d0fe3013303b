#include "train/metrics.h"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/file.h"

namespace hsm {

MetricsLog::MetricsLog(std::filesystem::path path, uint64_t bytes) : path_(std::move(path)) {
  std::error_code error;
  const uintmax_t size = std::filesystem::file_size(path_, error);
  bytes_ = error ? 0 : size;
  if (bytes_ > bytes) {
    if (::truncate(path_.c_str(), static_cast<off_t>(bytes)) != 0) fail("can't be cut back");
    bytes_ = bytes;
  }
  descriptor_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("can't be written");
}

MetricsLog::~MetricsLog() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

void MetricsLog::fail(const char* action) const {
  throw ResourceError(path_.string() + ": " + action + ": " + std::strerror(errno));
}

void MetricsLog::append(const nlohmann::ordered_json& event) {
  const std::string line = event.dump() + '\n';
  size_t done = 0;
  while (done < line.size()) {
    const ssize_t written = ::write(descriptor_, line.data() + done, line.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) fail("write failed");
    done += static_cast<size_t>(written);
  }
  bytes_ += line.size();
}

void MetricsLog::sync() {
  if (::fdatasync(descriptor_) != 0) fail("sync failed");
}

std::optional<nlohmann::ordered_json> last_event(const std::filesystem::path& path) {
  std::error_code ignored;
  if (!std::filesystem::is_regular_file(path, ignored)) return {};
  const std::string content = read_file(path);
  if (content.empty() || content.back() != '\n') return {};
  const size_t before = content.rfind('\n', content.size() - 2);
  const size_t first = content.size() < 2 || before == std::string::npos ? 0 : before + 1;
  auto event = nlohmann::ordered_json::parse(content.substr(first), nullptr, false);
  if (!event.is_object()) return {};
  return event;
}

}  // namespace hsm
