#pragma once
#include <array>
#include <cstdint>

namespace hsm {

/// What a stream of random numbers is for. The values are part of the key, so they never change.
enum class Purpose : uint32_t {
  initialization = 1,
  dropout_input = 2,
  dropout_hidden = 3,
  dropout_output = 4,
  dropout_embedding_rows = 5,
  shuffle = 6,
  bptt_length = 7,
  sampling = 8,
  unknown_singletons = 9,
  dropout_weight = 10,
};

/// Philox4x32-10 (Salmon, Moraes, Dror and Shaw, "Parallel random numbers: as easy as 1, 2, 3", SC 2011):
/// four 32-bit words, a pure function of counter and key.
constexpr std::array<uint32_t, 4> philox(std::array<uint32_t, 4> counter, std::array<uint32_t, 2> key) {
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * counter[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * counter[2];
    counter = {static_cast<uint32_t>(b >> 32) ^ counter[1] ^ key[0], static_cast<uint32_t>(b),
               static_cast<uint32_t>(a >> 32) ^ counter[3] ^ key[1], static_cast<uint32_t>(a)};
    key[0] += 0x9E3779B9;
    key[1] += 0xBB67AE85;
  }
  return counter;
}

/// Random numbers addressed by position, not drawn in order: a value depends on (seed, purpose) and the
/// two coordinates alone, so threads, chunks and resuming change nothing.
class CounterRandom {
 public:
  constexpr CounterRandom(uint64_t seed, Purpose purpose)
      : key_{static_cast<uint32_t>(seed) ^ (static_cast<uint32_t>(purpose) * 0x85EBCA6BU),
             static_cast<uint32_t>(seed >> 32) ^ (static_cast<uint32_t>(purpose) * 0xC2B2AE35U)} {}

  /// Of philox().
  [[nodiscard]] constexpr std::array<uint32_t, 2> key() const { return key_; }
  [[nodiscard]] constexpr std::array<uint32_t, 4> words(uint64_t major, uint64_t minor) const {
    return philox({static_cast<uint32_t>(minor), static_cast<uint32_t>(minor >> 32),
                   static_cast<uint32_t>(major), static_cast<uint32_t>(major >> 32)},
                  key_);
  }
  [[nodiscard]] constexpr uint64_t bits(uint64_t major, uint64_t minor) const {
    const auto four = words(major, minor);
    return (uint64_t{four[1]} << 32) | four[0];
  }
  /// In [0, 1), 53 random bits.
  [[nodiscard]] constexpr double uniform(uint64_t major, uint64_t minor) const {
    return static_cast<double>(bits(major, minor) >> 11) * 0x1.0p-53;
  }
  /// In [0, bound), bound ≥ 1; the bias of the multiplication, below 2^-32 · bound, is accepted.
  [[nodiscard]] constexpr uint64_t below(uint64_t bound, uint64_t major, uint64_t minor) const {
    __extension__ using Wide = unsigned __int128;
    return static_cast<uint64_t>((Wide{bits(major, minor)} * bound) >> 64);
  }

 private:
  std::array<uint32_t, 2> key_;
};

}  // namespace hsm
