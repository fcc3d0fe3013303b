#pragma once
#include <cstdint>

#include "kernels/device/element.h"

namespace hsm::kernels::device {

/// Philox4x32-10 as in base/random.h, in the form that both compilers take.
struct Words {
  uint32_t word[4];
};
HSM_HOST_DEVICE Words philox_words(uint64_t major, uint64_t minor, uint32_t key0, uint32_t key1) {
  Words w{{static_cast<uint32_t>(minor), static_cast<uint32_t>(minor >> 32), static_cast<uint32_t>(major),
           static_cast<uint32_t>(major >> 32)}};
  for (int round = 0; round < 10; ++round) {
    const uint64_t a = uint64_t{0xD2511F53} * w.word[0];
    const uint64_t b = uint64_t{0xCD9E8D57} * w.word[2];
    w = {{static_cast<uint32_t>(b >> 32) ^ w.word[1] ^ key0, static_cast<uint32_t>(b),
          static_cast<uint32_t>(a >> 32) ^ w.word[3] ^ key1, static_cast<uint32_t>(a)}};
    key0 += 0x9E3779B9;
    key1 += 0xBB67AE85;
  }
  return w;
}

}  // namespace hsm::kernels::device
