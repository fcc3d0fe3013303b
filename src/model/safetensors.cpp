#include "model/safetensors.h"

#include <algorithm>
#include <functional>

#include "base/error.h"
#include "base/hash.h"
#include "model/safetensors_header.h"

namespace hsm {
namespace {

constexpr const char* kChecksum = "checksum";

std::string checksum_of(std::span<const TensorRef> tensors) {
  Hasher hasher;
  for (const TensorRef& tensor : tensors) {
    if (tensor.bytes() > 0) hasher.add(tensor.data, tensor.bytes());
  }
  return hasher.hex();
}

}  // namespace

int64_t TensorRef::count() const {
  int64_t product = 1;
  for (const int64_t extent : shape) product *= extent;
  return product;
}

size_t TensorRef::bytes() const {
  return static_cast<size_t>(count()) * dtype_info(dtype).bytes;
}

SafetensorsFile::SafetensorsFile(const std::filesystem::path& path) : path_(path), file_(path) {
  SafetensorsHeader header = read_safetensors_header(file_.bytes(), path.string());
  tensors_ = std::move(header.tensors);
  metadata_ = std::move(header.metadata);
}

const TensorRef* SafetensorsFile::find(std::string_view name) const {
  const auto found = std::ranges::find(tensors_, name, &TensorRef::name);
  return found == tensors_.end() ? nullptr : &*found;
}

const TensorRef& SafetensorsFile::expect(std::string_view name, DType dtype,
                                         std::span<const int64_t> shape) const {
  const std::string prefix = path_.string() + ": tensor \"" + std::string(name) + "\"";
  const TensorRef* tensor = find(name);
  if (tensor == nullptr) throw DataError(prefix + " is missing");
  if (tensor->dtype != dtype) {
    throw DataError(prefix + " has type " + std::string(dtype_info(tensor->dtype).name) + ", expected " +
                    std::string(dtype_info(dtype).name));
  }
  if (!std::ranges::equal(tensor->shape, shape)) {
    throw DataError(prefix + " has shape " + shape_text(tensor->shape) + ", expected " + shape_text(shape));
  }
  return *tensor;
}

void write_safetensors(const std::filesystem::path& path, std::span<const TensorRef> tensors,
                       std::map<std::string, std::string> metadata) {
  // Widest values first, so that each tensor is aligned although there may be no holes.
  std::vector<TensorRef> ordered(tensors.begin(), tensors.end());
  std::ranges::stable_sort(ordered, std::ranges::greater{},
                           [](const TensorRef& tensor) { return dtype_info(tensor.dtype).bytes; });
  metadata[kChecksum] = checksum_of(ordered);
  AtomicFile file(path);
  file.write(make_safetensors_header(ordered, metadata));
  for (const TensorRef& tensor : ordered) {
    if (tensor.bytes() > 0) file.write(tensor.data, tensor.bytes());
  }
  file.commit();
}

void verify_checksum(const SafetensorsFile& file) {
  const auto recorded = file.metadata().find(kChecksum);
  if (recorded == file.metadata().end()) throw DataError(file.path().string() + ": carries no checksum");
  const std::string actual = checksum_of(file.tensors());
  if (actual != recorded->second) {
    throw DataError(file.path().string() + ": damaged: checksum of the data " + actual + ", expected " +
                    recorded->second);
  }
}

}  // namespace hsm
