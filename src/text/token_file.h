#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <span>
#include <vector>

#include "base/file.h"
#include "base/hash.h"

namespace hsm {

/// A corpus as public ids, made once from text and read in windows (pread), so that resident memory does
/// not depend on its length. Every line's tokens are followed by the id of `</s>`. docs/text.md has the
/// format.
class TokenFile {
 public:
  /// DataError when it is missing, no token file, damaged in its header, or not as long as that says.
  explicit TokenFile(const std::filesystem::path& path);
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;

  [[nodiscard]] int64_t size() const noexcept { return size_; }            ///< tokens, `</s>` included
  [[nodiscard]] int64_t sentences() const noexcept { return sentences_; }  ///< lines
  /// Words that were not in the vocabulary; a literal `<unk>` in the text is not counted.
  [[nodiscard]] int64_t unknown() const noexcept { return unknown_; }
  /// What it was made from: see corpus_key().
  [[nodiscard]] uint64_t key() const noexcept { return key_; }
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }
  /// Fills `out` with tokens [first, first + out.size()). Safe from several threads. DataError on a short
  /// read.
  void read(int64_t first, std::span<int32_t> out) const;
  /// Reads it all and compares with its checksum: false when its tokens are damaged.
  [[nodiscard]] bool intact() const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  int64_t sentences_ = 0;
  int64_t unknown_ = 0;
  uint64_t key_ = 0;
  uint64_t checksum_ = 0;
};

/// Writes a token file atomically: tokens in order, then commit().
class TokenFileWriter {
 public:
  explicit TokenFileWriter(const std::filesystem::path& path);

  void add(int32_t token) {
    buffer_.push_back(token);
    if (buffer_.size() == kBufferTokens) flush();
  }
  [[nodiscard]] int64_t size() const noexcept { return written_ + static_cast<int64_t>(buffer_.size()); }
  /// Replaces each token t written so far by new_id[t], in place and in bounded memory.
  void renumber(std::span<const int32_t> new_id);
  void commit(int64_t sentences, int64_t unknown, uint64_t key);

 private:
  static constexpr size_t kBufferTokens = size_t{1} << 18;

  void flush();

  AtomicFile file_;
  std::vector<int32_t> buffer_;
  std::optional<Hasher> hasher_;  // of the tokens flushed
  int64_t written_ = 0;
};

}  // namespace hsm
