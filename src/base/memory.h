#pragma once
#include <cstdint>

namespace hsm {

/// Largest resident set of this process so far, in bytes.
uint64_t peak_resident_bytes();

/// Anonymous part of the resident set now, in bytes: mapped files (libraries, weights) are not counted.
uint64_t anonymous_resident_bytes();

}  // namespace hsm
