#pragma once
#include <cstddef>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "model/safetensors.h"

namespace hsm {

/// How the format names a type, and how many bytes a value takes.
struct DTypeInfo {
  DType dtype;
  std::string_view name;
  size_t bytes;
};
const DTypeInfo& dtype_info(DType dtype);

/// "[3, 4]", for messages.
std::string shape_text(std::span<const int64_t> shape);

/// What the header of a safetensors file says: tensors in the order of their data, which lie in the file.
struct SafetensorsHeader {
  std::vector<TensorRef> tensors;
  std::map<std::string, std::string> metadata;
};

/// Reads and checks the header of a whole file, `bytes`; `file` names it in messages. DataError saying what
/// is wrong and where.
SafetensorsHeader read_safetensors_header(std::span<const std::byte> bytes, const std::string& file);

/// Length and header of a file whose data are those of `tensors` in this order; padded so that the data start
/// at a multiple of 64 bytes.
std::string make_safetensors_header(std::span<const TensorRef> tensors,
                                    const std::map<std::string, std::string>& metadata);

}  // namespace hsm
