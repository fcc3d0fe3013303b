#pragma once
#include <cstdint>
#include <filesystem>
#include <span>

namespace hsm {

/// A corpus as public ids, made once from text and read in windows (pread), so that resident memory does
/// not depend on its length. Every line's tokens are followed by the id of `</s>`.
class TokenFile {
 public:
  explicit TokenFile(const std::filesystem::path& path);
  ~TokenFile();
  TokenFile(TokenFile&& other) noexcept;
  TokenFile& operator=(TokenFile&& other) noexcept;

  [[nodiscard]] int64_t size() const noexcept;       ///< tokens, `</s>` included
  [[nodiscard]] int64_t sentences() const noexcept;  ///< lines
  [[nodiscard]] int64_t unknown() const noexcept;    ///< words that were not in the vocabulary
  /// Fills `out` with tokens [first, first + out.size()). Safe from several threads. DataError on a short
  /// read.
  void read(int64_t first, std::span<int32_t> out) const;

 private:
  std::filesystem::path path_;
  int descriptor_ = -1;
  int64_t size_ = 0;
  int64_t sentences_ = 0;
  int64_t unknown_ = 0;
};

}  // namespace hsm
