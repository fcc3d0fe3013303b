#include "text/byte_source.h"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>
#include <zstd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <new>
#include <string_view>

#include "base/error.h"

namespace hsm {
namespace {

constexpr size_t kInputBytes = size_t{1} << 18;

constexpr std::string_view kGzipMagic = "\x1F\x8B";
constexpr std::string_view kZstandardMagic = "\x28\xB5\x2F\xFD";
// A skippable frame of Zstandard starts with 0x5? 2A 4D 18: the first byte's lower half is free.
constexpr std::string_view kSkippableMagic = "\x50\x2A\x4D\x18";

// Whether `bytes` and `magic` agree as far as both go.
bool could_start_with(std::string_view bytes, std::string_view magic, uint8_t first_mask = 0xFF) {
  const size_t common = std::min(bytes.size(), magic.size());
  for (size_t i = 0; i < common; ++i) {
    const uint8_t mask = i == 0 ? first_mask : 0xFF;
    if ((static_cast<uint8_t>(bytes[i]) & mask) != static_cast<uint8_t>(magic[i])) return false;
  }
  return true;
}

enum class Format { undecided, plain, gzip, zstandard };

Format format_of(std::string_view bytes) {
  const bool gzip = could_start_with(bytes, kGzipMagic);
  const bool zstandard =
      could_start_with(bytes, kZstandardMagic) || could_start_with(bytes, kSkippableMagic, 0xF0);
  if (gzip) return bytes.size() >= kGzipMagic.size() ? Format::gzip : Format::undecided;
  if (zstandard) return bytes.size() >= kZstandardMagic.size() ? Format::zstandard : Format::undecided;
  return Format::plain;
}

struct Progress {
  size_t consumed = 0;
  size_t produced = 0;
};

// Thrown by an unpacker; the owner, who knows the file's name, makes a DataError of it.
struct Damaged {
  std::string reason;
};

}  // namespace

/// One archive format.
class ByteSource::Unpacker {
 public:
  Unpacker() = default;
  virtual ~Unpacker() = default;
  Unpacker(const Unpacker&) = delete;
  Unpacker& operator=(const Unpacker&) = delete;

  virtual Progress unpack(std::span<const char> in, std::span<char> out) = 0;
  /// Whether the archive may end here: between members.
  [[nodiscard]] virtual bool complete() const = 0;
};

class ByteSource::Gzip : public Unpacker {
 public:
  Gzip() {
    // 15 + 16: the largest window, a gzip header.
    if (::inflateInit2(&stream_, 15 + 16) != Z_OK) throw std::bad_alloc();
  }
  ~Gzip() override { ::inflateEnd(&stream_); }

  Progress unpack(std::span<const char> in, std::span<char> out) override {
    if (complete_ && !in.empty()) {
      // Another member may follow; zeros up to the end are padding of a tape or block device.
      if (in.front() == '\0') return {in.size(), 0};
      ::inflateReset(&stream_);
      complete_ = false;
    }
    stream_.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(in.data()));
    stream_.avail_in = static_cast<uInt>(in.size());
    stream_.next_out = reinterpret_cast<Bytef*>(out.data());
    stream_.avail_out = static_cast<uInt>(std::min(out.size(), size_t{1} << 30));
    const uInt room = stream_.avail_out;
    const int status = ::inflate(&stream_, Z_NO_FLUSH);
    if (status == Z_STREAM_END) complete_ = true;
    if (status != Z_OK && status != Z_STREAM_END && status != Z_BUF_ERROR) {
      throw Damaged{stream_.msg != nullptr ? stream_.msg : "unknown format"};
    }
    return {in.size() - stream_.avail_in, room - stream_.avail_out};
  }
  [[nodiscard]] bool complete() const override { return complete_; }

 private:
  z_stream stream_{};
  bool complete_ = false;
};

class ByteSource::Zstandard : public Unpacker {
 public:
  Zstandard() : stream_(::ZSTD_createDStream()) {
    if (!stream_) throw std::bad_alloc();
  }

  Progress unpack(std::span<const char> in, std::span<char> out) override {
    ZSTD_inBuffer input{in.data(), in.size(), 0};
    ZSTD_outBuffer output{out.data(), out.size(), 0};
    const size_t status = ::ZSTD_decompressStream(stream_.get(), &output, &input);
    if (::ZSTD_isError(status) != 0U) throw Damaged{::ZSTD_getErrorName(status)};
    // A call without input between two frames announces the bytes of the next header: no news.
    if (input.pos > 0 || output.pos > 0) complete_ = status == 0;
    return {input.pos, output.pos};
  }
  [[nodiscard]] bool complete() const override { return complete_; }

 private:
  struct Free {
    void operator()(ZSTD_DStream* stream) const { ::ZSTD_freeDStream(stream); }
  };
  std::unique_ptr<ZSTD_DStream, Free> stream_;
  bool complete_ = false;
};

ByteSource::ByteSource(const std::string& path)
    : name_(path == "-" ? "standard input" : path), input_(std::make_unique<char[]>(kInputBytes)) {
  descriptor_ = path == "-" ? STDIN_FILENO : ::open(path.c_str(), O_RDONLY | O_CLOEXEC);
  if (descriptor_ < 0) fail(std::string("can't be read: ") + std::strerror(errno));
  owned_ = path != "-";
  struct stat status {};
  if (::fstat(descriptor_, &status) == 0 && S_ISDIR(status.st_mode)) {
    if (owned_) ::close(descriptor_);
    fail("is a folder, expected a file");
  }
}

ByteSource::~ByteSource() {
  if (owned_) ::close(descriptor_);
}

void ByteSource::fail(const std::string& what) const {
  throw DataError(name_ + ": " + what);
}

size_t ByteSource::read_raw(std::span<char> out) {
  ssize_t count = 0;
  do {
    count = ::read(descriptor_, out.data(), out.size());
  } while (count < 0 && errno == EINTR);
  if (count < 0) fail(std::string("read error: ") + std::strerror(errno));
  at_end_ = count == 0;
  bytes_read_ += static_cast<uint64_t>(count);
  return static_cast<size_t>(count);
}

void ByteSource::fill_input() {
  if (begin_ == end_) begin_ = end_ = 0;
  end_ += read_raw({input_.get() + end_, kInputBytes - end_});
}

void ByteSource::detect_format() {
  Format format = Format::undecided;
  while (format == Format::undecided && !at_end_) {
    fill_input();
    format = format_of({input_.get(), end_});
  }
  if (format == Format::gzip) unpacker_ = std::make_unique<Gzip>();
  if (format == Format::zstandard) unpacker_ = std::make_unique<Zstandard>();
}

size_t ByteSource::read(std::span<char> out) {
  if (bytes_read_ == 0 && !at_end_) detect_format();
  while (true) {
    if (begin_ == end_ && !at_end_) fill_input();
    if (!unpacker_) {
      const size_t count = std::min(out.size(), end_ - begin_);
      std::copy_n(input_.get() + begin_, count, out.data());
      begin_ += count;
      return count;
    }
    Progress progress;
    try {
      progress = unpacker_->unpack({input_.get() + begin_, end_ - begin_}, out);
    } catch (const Damaged& damage) {
      fail("the archive can't be unpacked near byte " + std::to_string(bytes_read_ - (end_ - begin_)) + ": " +
           damage.reason);
    }
    begin_ += progress.consumed;
    if (progress.produced > 0) return progress.produced;
    if (at_end_ && begin_ == end_) {
      if (!unpacker_->complete())
        fail("truncated archive: ends after " + std::to_string(bytes_read_) + " bytes");
      return 0;
    }
  }
}

}  // namespace hsm
