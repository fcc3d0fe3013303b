#include "decode/arena.h"

#include <sys/mman.h>

#include <algorithm>
#include <stdexcept>
#include <string>
#include <utility>

#include "base/error.h"
#include "base/size.h"

namespace hsm {

void add_to_part(std::vector<MemoryPart>& parts, std::string_view name, uint64_t bytes) {
  const auto known = std::ranges::find(parts, name, &MemoryPart::name);
  if (known == parts.end()) {
    parts.push_back({name, bytes});
  } else {
    known->bytes += bytes;
  }
}

Arena::Arena(uint64_t bytes) : size_(std::max<uint64_t>(bytes, kAlignment)) {
  void* memory = mmap(nullptr, size_, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (memory == MAP_FAILED) {
    throw ResourceError("the system refuses " + format_size(size_) + " of memory for decoding");
  }
  memory_ = static_cast<std::byte*>(memory);
}

Arena::~Arena() {
  if (memory_ != nullptr) munmap(memory_, size_);
}

Arena::Arena(Arena&& other) noexcept
    : memory_(std::exchange(other.memory_, nullptr)),
      size_(std::exchange(other.size_, 0)),
      used_(std::exchange(other.used_, 0)),
      parts_(std::move(other.parts_)) {}

std::byte* Arena::take_bytes(uint64_t bytes, std::string_view part) {
  const uint64_t rounded = (bytes + kAlignment - 1) / kAlignment * kAlignment;
  if (memory_ != nullptr && rounded > size_ - used_) {
    throw std::logic_error("the workspace for decoding is larger than was planned, at " + std::string(part));
  }
  std::byte* memory = memory_ == nullptr ? nullptr : memory_ + used_;
  used_ += rounded;
  add_to_part(parts_, part, rounded);
  return memory;
}

}  // namespace hsm
