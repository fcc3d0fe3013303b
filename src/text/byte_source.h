#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>

namespace hsm {

/// The bytes of a file, unpacked when it is a gzip or Zstandard archive (told by its first bytes; archives of
/// several members too). "-" is standard input.
class ByteSource {
 public:
  /// DataError when it can't be opened, or is a folder.
  explicit ByteSource(const std::string& path);
  ~ByteSource();
  ByteSource(const ByteSource&) = delete;
  ByteSource& operator=(const ByteSource&) = delete;

  /// Fills the start of `out`, waiting only while nothing is there, and returns the number of bytes; 0 at the
  /// end. DataError for a read error, a damaged archive, or one that ends too early.
  size_t read(std::span<char> out);
  [[nodiscard]] const std::string& name() const noexcept { return name_; }
  /// Bytes taken from the file so far, before unpacking.
  [[nodiscard]] uint64_t bytes_read() const noexcept { return bytes_read_; }

 private:
  class Unpacker;
  class Gzip;
  class Zstandard;

  size_t read_raw(std::span<char> out);
  void fill_input();
  void detect_format();
  [[noreturn]] void fail(const std::string& what) const;

  std::string name_;
  int descriptor_ = -1;
  bool owned_ = false;
  uint64_t bytes_read_ = 0;
  bool at_end_ = false;            // of the file
  std::unique_ptr<char[]> input_;  // bytes read, not yet handed on: [begin_, end_)
  size_t begin_ = 0;
  size_t end_ = 0;
  std::unique_ptr<Unpacker> unpacker_;  // null for plain text
};

}  // namespace hsm
