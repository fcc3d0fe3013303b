#pragma once
#include <ATen/core/Tensor.h>

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "decode/arena.h"
#include "kernels/device/decode_kernels.h"

namespace hsm {

/// One block of a device's memory handed out piece by piece, as Arena does with the host's.
class DeviceArena {
 public:
  /// Zeros. 0 bytes: only measures, and hands out null pointers.
  DeviceArena(at::Device device, uint64_t bytes);

  /// Memory for `count` values, aligned to 256 bytes and accounted under `part`, a literal. Throws
  /// std::logic_error past the arena's size.
  template <class T>
  T* take(int64_t count, std::string_view part) {
    return reinterpret_cast<T*>(take_bytes(static_cast<uint64_t>(count) * sizeof(T), part));
  }
  [[nodiscard]] bool measuring() const noexcept { return size_ == 0; }
  [[nodiscard]] std::span<const MemoryPart> parts() const noexcept { return parts_; }

 private:
  static constexpr uint64_t kAlignment = 256;

  std::byte* take_bytes(uint64_t bytes, std::string_view part);

  at::Tensor memory_;
  uint64_t size_ = 0;
  uint64_t used_ = 0;
  std::vector<MemoryPart> parts_;
};

/// Where arrays lie in a piece of memory.
class BlockLayout {
 public:
  template <class T>
  struct Place {
    int64_t offset = 0;
    int64_t count = 0;
  };
  template <class T>
  Place<T> add(int64_t count) {
    const Place<T> place{bytes_, count};
    bytes_ += (count * static_cast<int64_t>(sizeof(T)) + 15) / 16 * 16;
    return place;
  }
  [[nodiscard]] int64_t bytes() const noexcept { return bytes_; }

 private:
  int64_t bytes_ = 0;
};

/// Arrays that exist on host and device, in one piece each, so that all go over in one copy.
class MirroredBlock {
 public:
  template <class T>
  using Place = BlockLayout::Place<T>;

  MirroredBlock(Arena& host, DeviceArena& device, const BlockLayout& layout, std::string_view host_part,
                std::string_view device_part)
      : bytes_(layout.bytes()),
        host_(host.take<std::byte>(bytes_, host_part)),
        device_(device.take<std::byte>(bytes_, device_part)) {}

  template <class T>
  [[nodiscard]] std::span<T> host(Place<T> place) const {
    return {reinterpret_cast<T*>(host_.data() + place.offset), static_cast<size_t>(place.count)};
  }
  template <class T>
  [[nodiscard]] T* device(Place<T> place) const {
    return device_ == nullptr ? nullptr : reinterpret_cast<T*>(device_ + place.offset);
  }
  void upload(kernels::device::DecodeKernels& kernels) const {
    kernels.upload(host_.data(), bytes_, device_);
  }
  void download(kernels::device::DecodeKernels& kernels) const {
    kernels.download(device_, bytes_, host_.data());
  }

 private:
  int64_t bytes_;
  std::span<std::byte> host_;
  std::byte* device_;
};

}  // namespace hsm
