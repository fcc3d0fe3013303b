#pragma once
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

namespace hsm {

/// XXH3 of 64 bits over a sequence of byte ranges. Guards against mix-ups and damage, not against malice.
class Hasher {
 public:
  Hasher();
  ~Hasher();
  Hasher(const Hasher&) = delete;
  Hasher& operator=(const Hasher&) = delete;

  void add(const void* data, size_t bytes);
  void add(std::string_view text) { add(text.data(), text.size()); }
  [[nodiscard]] uint64_t value() const;
  /// The value as 16 hexadecimal digits.
  [[nodiscard]] std::string hex() const;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace hsm
