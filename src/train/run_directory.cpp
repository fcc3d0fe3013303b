#include "train/run_directory.h"

#include <fcntl.h>
#include <spdlog/spdlog.h>
#include <sys/file.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <string>
#include <system_error>
#include <utility>
#include <vector>

#include "base/error.h"
#include "base/file.h"

namespace hsm {
namespace {

/// AtomicFile's temporary names: TARGET.tmp and a process id.
bool is_temporary(const std::string& name) {
  const size_t mark = name.rfind(".tmp");
  if (mark == std::string::npos || mark + 4 == name.size()) return false;
  return std::all_of(name.begin() + static_cast<std::ptrdiff_t>(mark) + 4, name.end(),
                     [](char digit) { return digit >= '0' && digit <= '9'; });
}

void remove_temporaries(const std::filesystem::path& folder) {
  std::error_code error;
  std::vector<std::filesystem::path> found;
  for (const auto& entry : std::filesystem::directory_iterator(folder, error)) {
    if (is_temporary(entry.path().filename().string())) found.push_back(entry.path());
  }
  for (const auto& path : found) std::filesystem::remove(path, error);
}

}  // namespace

RunDirectory::RunDirectory(std::filesystem::path path) : path_(std::move(path)) {
  make_directories(path_);
  lock();
  remove_temporaries(path_);
  remove_temporaries(checkpoints());
}

RunDirectory::~RunDirectory() {
  if (lock_ >= 0) ::close(lock_);
}

void RunDirectory::lock() {
  const std::filesystem::path file = path_ / ".lock";
  lock_ = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0644);
  if (lock_ < 0) {
    throw ResourceError(path_.string() + ": the folder can't be written: " + std::strerror(errno));
  }
  if (::flock(lock_, LOCK_EX | LOCK_NB) == 0) return;
  const int reason = errno;
  if (reason == EWOULDBLOCK) {
    ::close(std::exchange(lock_, -1));
    throw ResourceError(path_.string() + ": another process trains in this folder; wait for it or stop it");
  }
  spdlog::warn("{}: this file system knows no locks ({}): don't train twice in this folder", path_.string(),
               std::strerror(reason));
}

bool RunDirectory::holds_run() const {
  std::error_code error;
  for (const auto& file : {config(), vocabulary(), classes(), metrics(), model()}) {
    if (std::filesystem::exists(file, error)) return true;
  }
  return std::filesystem::directory_iterator(checkpoints(), error) != std::filesystem::directory_iterator();
}

}  // namespace hsm
