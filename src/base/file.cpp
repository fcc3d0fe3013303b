#include "base/file.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <fstream>
#include <system_error>
#include <utility>

#include "base/error.h"

namespace hsm {
namespace {

constexpr size_t kBufferBytes = size_t{1} << 20;

std::string reason() {
  return std::strerror(errno);
}

void write_fully(int descriptor, const char* data, size_t bytes, auto&& on_error) {
  while (bytes > 0) {
    const ssize_t written = ::write(descriptor, data, bytes);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) on_error();
    data += written;
    bytes -= static_cast<size_t>(written);
  }
}

}  // namespace

std::string read_file(const std::filesystem::path& path) {
  std::error_code ignored;
  if (std::filesystem::is_directory(path, ignored)) {
    throw DataError(path.string() + ": is a folder, expected a file");
  }
  std::ifstream in(path, std::ios::binary);
  if (!in) throw DataError(path.string() + ": can't be read: " + reason());
  std::string content{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  if (in.bad()) throw DataError(path.string() + ": read error: " + reason());
  return content;
}

void make_directories(const std::filesystem::path& path) {
  std::error_code error;
  std::filesystem::create_directories(path, error);
  if (error) throw ResourceError(path.string() + ": the folder can't be made: " + error.message());
}

AtomicFile::AtomicFile(std::filesystem::path target)
    : target_(std::move(target)), temporary_(target_.string() + ".tmp" + std::to_string(::getpid())) {
  descriptor_ = ::open(temporary_.c_str(), O_RDWR | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);
  if (descriptor_ < 0) fail("can't be written");
  struct stat old {};
  if (::stat(target_.c_str(), &old) == 0) static_cast<void>(::fchmod(descriptor_, old.st_mode & 07777));
}

AtomicFile::~AtomicFile() {
  if (descriptor_ < 0) return;
  ::close(descriptor_);
  ::unlink(temporary_.c_str());
}

void AtomicFile::fail(const char* action) const {
  throw ResourceError(target_.string() + ": " + action + ": " + reason());
}

void AtomicFile::write(const void* data, size_t bytes) {
  const auto* first = static_cast<const char*>(data);
  size_ += bytes;
  if (buffer_.size() + bytes > kBufferBytes) flush();
  if (bytes > kBufferBytes) {
    write_fully(descriptor_, first, bytes, [this] { fail("write failed"); });
  } else {
    buffer_.append(first, bytes);
  }
}

void AtomicFile::flush() {
  write_fully(descriptor_, buffer_.data(), buffer_.size(), [this] { fail("write failed"); });
  buffer_.clear();
}

void AtomicFile::rewrite(uint64_t offset, std::string_view bytes) {
  flush();
  if (::pwrite(descriptor_, bytes.data(), bytes.size(), static_cast<off_t>(offset)) !=
      static_cast<ssize_t>(bytes.size())) {
    fail("write failed");
  }
}

void AtomicFile::read_back(uint64_t offset, void* data, size_t bytes) {
  flush();
  errno = EIO;  // for a short read, which sets nothing
  if (::pread(descriptor_, data, bytes, static_cast<off_t>(offset)) != static_cast<ssize_t>(bytes)) {
    fail("read back failed");
  }
}

void AtomicFile::commit() {
  flush();
  if (::fsync(descriptor_) != 0) fail("sync failed");
  if (::close(std::exchange(descriptor_, -1)) != 0) fail("close failed");
  if (::rename(temporary_.c_str(), target_.c_str()) != 0) fail("rename failed");
  const std::filesystem::path folder = target_.has_parent_path() ? target_.parent_path() : ".";
  const int directory = ::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC);
  if (directory < 0) return;  // the rename is done; only its durability can't be forced
  ::fsync(directory);
  ::close(directory);
}

void write_file(const std::filesystem::path& path, std::string_view content) {
  AtomicFile file(path);
  file.write(content);
  file.commit();
}

MappedFile::MappedFile(const std::filesystem::path& path) {
  const int descriptor = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor < 0) throw DataError(path.string() + ": can't be read: " + reason());
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode)) {
    ::close(descriptor);
    throw DataError(path.string() + ": not a regular file");
  }
  size_ = static_cast<size_t>(status.st_size);
  if (size_ > 0) {
    void* mapped = ::mmap(nullptr, size_, PROT_READ, MAP_SHARED, descriptor, 0);
    if (mapped == MAP_FAILED) {
      const std::string why = reason();
      ::close(descriptor);
      throw DataError(path.string() + ": can't be mapped: " + why);
    }
    data_ = static_cast<const std::byte*>(mapped);
  }
  ::close(descriptor);
}

MappedFile::~MappedFile() {
  if (data_ != nullptr) ::munmap(const_cast<std::byte*>(data_), size_);
}

MappedFile::MappedFile(MappedFile&& other) noexcept
    : data_(std::exchange(other.data_, nullptr)), size_(std::exchange(other.size_, 0)) {}

MappedFile& MappedFile::operator=(MappedFile&& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(size_, other.size_);
  return *this;
}

}  // namespace hsm
