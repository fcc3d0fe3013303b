#include "base/hash.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

#include <array>
#include <cstdio>

namespace hsm {

struct Hasher::State {
  XXH3_state_t xxh;
};

Hasher::Hasher() : state_(std::make_unique<State>()) {
  XXH3_64bits_reset(&state_->xxh);
}
Hasher::~Hasher() = default;

void Hasher::add(const void* data, size_t bytes) {
  XXH3_64bits_update(&state_->xxh, data, bytes);
}

uint64_t Hasher::value() const {
  return XXH3_64bits_digest(&state_->xxh);
}

std::string Hasher::hex() const {
  std::array<char, 17> text{};
  std::snprintf(text.data(), text.size(), "%016llx", static_cast<unsigned long long>(value()));
  return text.data();
}

}  // namespace hsm
