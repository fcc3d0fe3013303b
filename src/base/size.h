#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hsm {

/// Bytes of a size such as "512MiB", "2GB", "1.5 GiB" or "4096". Decimal and binary units, case ignored.
/// UsageError, with `what` named as the place, when it is not one.
uint64_t parse_size(std::string_view text, std::string_view what);

/// A size for people: "1.5 GiB".
std::string format_size(uint64_t bytes);

/// A count for people: "12,749,525".
std::string format_count(int64_t count);

/// A duration for people: "1h02m", "3m20s", "12s".
std::string format_seconds(double seconds);

}  // namespace hsm
