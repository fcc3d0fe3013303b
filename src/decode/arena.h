#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string_view>
#include <type_traits>
#include <vector>

namespace hsm {

/// What a part of the workspace is for, and its bytes.
struct MemoryPart {
  std::string_view name;  ///< a literal
  uint64_t bytes = 0;
};

/// Adds bytes to a part, which is made where it is new.
void add_to_part(std::vector<MemoryPart>& parts, std::string_view name, uint64_t bytes);

/// One block of memory handed out piece by piece and given back whole. A default-made arena only measures:
/// it adds up what is asked of it and hands out empty spans, so that the code that lays a workspace out is
/// also the code that says how large it is.
class Arena {
 public:
  Arena() = default;
  /// Reserves address space; pages become resident when they are first written. ResourceError when the
  /// system refuses.
  explicit Arena(uint64_t bytes);
  ~Arena();
  Arena(Arena&& other) noexcept;
  Arena& operator=(Arena&&) = delete;

  /// Uninitialised memory for `count` values, aligned to 64 bytes and accounted under `part`. Throws
  /// std::logic_error past the arena's size.
  template <class T>
  std::span<T> take(int64_t count, std::string_view part) {
    static_assert(std::is_trivially_copyable_v<T> && alignof(T) <= kAlignment);
    std::byte* memory = take_bytes(static_cast<uint64_t>(count) * sizeof(T), part);
    if (memory == nullptr) return {};
    return {reinterpret_cast<T*>(memory), static_cast<size_t>(count)};
  }

  [[nodiscard]] bool measuring() const noexcept { return memory_ == nullptr; }
  [[nodiscard]] uint64_t used() const noexcept { return used_; }
  /// Pieces added up by part, in order of first use; they sum to used().
  [[nodiscard]] const std::vector<MemoryPart>& parts() const noexcept { return parts_; }

  static constexpr uint64_t kAlignment = 64;

 private:
  std::byte* take_bytes(uint64_t bytes, std::string_view part);

  std::byte* memory_ = nullptr;
  uint64_t size_ = 0;
  uint64_t used_ = 0;
  std::vector<MemoryPart> parts_;
};

}  // namespace hsm
