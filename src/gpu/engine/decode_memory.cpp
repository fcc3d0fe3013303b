#include "gpu/engine/decode_memory.h"

#include <ATen/ATen.h>

#include <stdexcept>

namespace hsm {

DeviceArena::DeviceArena(at::Device device, uint64_t bytes) : size_(bytes) {
  if (bytes > 0) {
    memory_ = at::zeros({static_cast<int64_t>(bytes)}, at::TensorOptions().device(device).dtype(at::kByte));
  }
}

std::byte* DeviceArena::take_bytes(uint64_t bytes, std::string_view part) {
  bytes = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (!measuring() && bytes > size_ - used_) throw std::logic_error("DeviceArena: more than was planned");
  auto* memory = measuring() ? nullptr : static_cast<std::byte*>(memory_.mutable_data_ptr()) + used_;
  used_ += bytes;
  add_to_part(parts_, part, bytes);
  return memory;
}

}  // namespace hsm
