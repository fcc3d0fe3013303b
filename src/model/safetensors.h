#pragma once
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/file.h"

namespace hsm {

enum class DType { f32, f64, i32, i64, u8 };

/// A tensor to write, or one that lies in an opened file. Row-major, not owned.
struct TensorRef {
  std::string name;
  DType dtype = DType::f32;
  std::vector<int64_t> shape;
  const void* data = nullptr;

  [[nodiscard]] int64_t count() const;
  [[nodiscard]] size_t bytes() const;
};

/// A safetensors file mapped read-only and checked whole: header, offsets without holes, sizes without
/// overflow, no duplicate names. DataError names the file and what is wrong.
class SafetensorsFile {
 public:
  SafetensorsFile() = default;
  explicit SafetensorsFile(const std::filesystem::path& path);

  [[nodiscard]] const std::vector<TensorRef>& tensors() const noexcept { return tensors_; }
  [[nodiscard]] const std::map<std::string, std::string>& metadata() const noexcept { return metadata_; }
  /// DataError, naming the file, when it is missing or has another type or shape.
  const TensorRef& expect(std::string_view name, DType dtype, std::span<const int64_t> shape) const;
  [[nodiscard]] const TensorRef* find(std::string_view name) const;
  [[nodiscard]] const std::filesystem::path& path() const noexcept { return path_; }

 private:
  std::filesystem::path path_;
  MappedFile file_;
  std::vector<TensorRef> tensors_;
  std::map<std::string, std::string> metadata_;
};

/// Writes atomically; data start at a multiple of 64 bytes. The metadata get "checksum": the XXH3 of all
/// tensor data, which verify_checksum() compares.
void write_safetensors(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                       std::map<std::string, std::string> metadata);

/// DataError when the data aren't those that were written.
void verify_checksum(const SafetensorsFile& file);

}  // namespace hsm
