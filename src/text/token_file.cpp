#include "text/token_file.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <bit>
#include <cerrno>
#include <cstring>
#include <string>
#include <utility>

#include "base/error.h"

namespace hsm {
namespace {

static_assert(std::endian::native == std::endian::little, "token files are little-endian");

struct Header {
  char magic[8] = {'H', 'S', 'M', 'T', 'O', 'K', '0', '1'};
  int64_t size = 0;
  int64_t sentences = 0;
  int64_t unknown = 0;
  uint64_t key = 0;
  uint64_t checksum = 0;         // of the tokens
  uint64_t header_checksum = 0;  // of all above
};
static_assert(sizeof(Header) == 56);

constexpr int64_t kHeaderBytes = sizeof(Header);
constexpr size_t kWindowTokens = size_t{1} << 18;

std::string_view bytes_of(const Header& header) {
  return {reinterpret_cast<const char*>(&header), sizeof header};
}

uint64_t header_checksum(const Header& header) {
  Hasher hasher;
  hasher.add(&header, offsetof(Header, header_checksum));
  return hasher.value();
}

// Reads until `bytes` are there; false at an early end of the file or an error (then errno says why).
bool read_fully(int descriptor, void* data, size_t bytes, int64_t offset) {
  auto* to = static_cast<char*>(data);
  errno = 0;
  while (bytes > 0) {
    const ssize_t count = ::pread(descriptor, to, bytes, offset);
    if (count < 0 && errno == EINTR) continue;
    if (count <= 0) return false;
    to += count;
    offset += count;
    bytes -= static_cast<size_t>(count);
  }
  return true;
}

int64_t offset_of(int64_t token) {
  return kHeaderBytes + token * static_cast<int64_t>(sizeof(int32_t));
}

}  // namespace

TokenFile::TokenFile(const std::filesystem::path& path) : path_(path) {
  descriptor_ = ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) throw DataError(path.string() + ": can't be read: " + std::strerror(errno));
  const auto refuse = [&](const std::string& what) {
    ::close(std::exchange(descriptor_, -1));
    throw DataError(path.string() + ": " + what);
  };
  Header header;
  const Header expected;
  struct stat status {};
  if (!read_fully(descriptor_, &header, sizeof header, 0) || ::fstat(descriptor_, &status) != 0 ||
      !std::equal(std::begin(header.magic), std::end(header.magic), std::begin(expected.magic))) {
    refuse("is not a token file of this version");
  }
  if (header.header_checksum != header_checksum(header)) refuse("the header of the token file is damaged");
  if (status.st_size != offset_of(header.size)) {
    refuse("has " + std::to_string(status.st_size) + " bytes, expected " +
           std::to_string(offset_of(header.size)) + " by its header");
  }
  size_ = header.size;
  sentences_ = header.sentences;
  unknown_ = header.unknown;
  key_ = header.key;
  checksum_ = header.checksum;
}

TokenFile::~TokenFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

TokenFile::TokenFile(TokenFile&& other) noexcept
    : path_(std::move(other.path_)),
      descriptor_(std::exchange(other.descriptor_, -1)),
      size_(other.size_),
      sentences_(other.sentences_),
      unknown_(other.unknown_),
      key_(other.key_),
      checksum_(other.checksum_) {}

TokenFile& TokenFile::operator=(TokenFile&& other) noexcept {
  std::swap(path_, other.path_);
  std::swap(descriptor_, other.descriptor_);
  std::swap(size_, other.size_);
  std::swap(sentences_, other.sentences_);
  std::swap(unknown_, other.unknown_);
  std::swap(key_, other.key_);
  std::swap(checksum_, other.checksum_);
  return *this;
}

void TokenFile::read(int64_t first, std::span<int32_t> out) const {
  const auto count = static_cast<int64_t>(out.size());
  if (read_fully(descriptor_, out.data(), out.size_bytes(), offset_of(first))) return;
  throw DataError(path_.string() + ": tokens " + std::to_string(first) + " to " +
                  std::to_string(first + count) +
                  " can't be read: " + (errno != 0 ? std::strerror(errno) : "the file ends before them"));
}

bool TokenFile::intact() const {
  Hasher hasher;
  std::vector<int32_t> window(kWindowTokens);
  for (int64_t first = 0; first < size_;) {
    const auto count = std::min(size_ - first, static_cast<int64_t>(window.size()));
    const std::span<int32_t> part{window.data(), static_cast<size_t>(count)};
    read(first, part);
    hasher.add(part.data(), part.size_bytes());
    first += count;
  }
  return hasher.value() == checksum_;
}

TokenFileWriter::TokenFileWriter(const std::filesystem::path& path) : file_(path), hasher_(std::in_place) {
  buffer_.reserve(kBufferTokens);
  file_.write(bytes_of(Header{}));
}

void TokenFileWriter::flush() {
  const size_t bytes = buffer_.size() * sizeof(int32_t);
  hasher_->add(buffer_.data(), bytes);
  file_.write(buffer_.data(), bytes);
  written_ += static_cast<int64_t>(buffer_.size());
  buffer_.clear();
}

void TokenFileWriter::renumber(std::span<const int32_t> new_id) {
  flush();
  hasher_.emplace();
  for (int64_t first = 0; first < written_;) {
    buffer_.resize(static_cast<size_t>(std::min(written_ - first, static_cast<int64_t>(kBufferTokens))));
    const size_t bytes = buffer_.size() * sizeof(int32_t);
    const auto offset = static_cast<uint64_t>(offset_of(first));
    file_.read_back(offset, buffer_.data(), bytes);
    for (int32_t& token : buffer_) token = new_id[static_cast<size_t>(token)];
    hasher_->add(buffer_.data(), bytes);
    file_.rewrite(offset, {reinterpret_cast<const char*>(buffer_.data()), bytes});
    first += static_cast<int64_t>(buffer_.size());
  }
  buffer_.clear();
}

void TokenFileWriter::commit(int64_t sentences, int64_t unknown, uint64_t key) {
  flush();
  Header header;
  header.size = written_;
  header.sentences = sentences;
  header.unknown = unknown;
  header.key = key;
  header.checksum = hasher_->value();
  header.header_checksum = header_checksum(header);
  file_.rewrite(0, bytes_of(header));
  file_.commit();
}

}  // namespace hsm
