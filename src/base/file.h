#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <span>
#include <string>
#include <string_view>

namespace hsm {

/// Whole content of a file. DataError when it can't be read.
std::string read_file(const std::filesystem::path& path);

/// Makes a folder and its parents. ResourceError when that fails.
void make_directories(const std::filesystem::path& path);

/// Writes a file so that a reader sees the old content or all of the new: to a temporary name beside the
/// target, synced, renamed, the folder synced. A file that replaces one has its permissions. Without commit()
/// the temporary file is removed. ResourceError when the disk is full or not writable.
class AtomicFile {
 public:
  explicit AtomicFile(std::filesystem::path target);
  ~AtomicFile();
  AtomicFile(const AtomicFile&) = delete;
  AtomicFile& operator=(const AtomicFile&) = delete;

  void write(std::string_view bytes) { write(bytes.data(), bytes.size()); }
  void write(const void* data, size_t bytes);
  /// Overwrites bytes already written, as for a header whose content is known last.
  void rewrite(uint64_t offset, std::string_view bytes);
  /// Reads bytes written before, for content that is worked over once more before commit().
  void read_back(uint64_t offset, void* data, size_t bytes);
  [[nodiscard]] uint64_t size() const noexcept { return size_; }
  void commit();

 private:
  [[noreturn]] void fail(const char* action) const;
  void flush();

  std::filesystem::path target_;
  std::filesystem::path temporary_;
  std::string buffer_;
  uint64_t size_ = 0;
  int descriptor_ = -1;
};

/// Writes a whole small file atomically.
void write_file(const std::filesystem::path& path, std::string_view content);

/// A file mapped read-only, its pages shared between processes. DataError when it can't be opened.
class MappedFile {
 public:
  MappedFile() = default;
  explicit MappedFile(const std::filesystem::path& path);
  ~MappedFile();
  MappedFile(MappedFile&& other) noexcept;
  MappedFile& operator=(MappedFile&& other) noexcept;

  [[nodiscard]] std::span<const std::byte> bytes() const noexcept { return {data_, size_}; }

 private:
  const std::byte* data_ = nullptr;
  size_t size_ = 0;
};

}  // namespace hsm
