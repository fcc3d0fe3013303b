#include "base/size.h"

#include <algorithm>
#include <array>
#include <cctype>
#include <charconv>
#include <cmath>
#include <cstdio>

#include "base/error.h"

namespace hsm {

uint64_t parse_size(std::string_view text, std::string_view what) {
  const auto refuse = [&] [[noreturn]] () {
    throw UsageError(std::string(what) + ": \"" + std::string(text) +
                     "\" is no size, expected one like 512MiB, 2GB or a number of bytes");
  };
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || !std::isfinite(value) || value < 0) refuse();
  std::string unit;
  for (const char* c = end; c != text.data() + text.size(); ++c) {
    if (*c != ' ') unit += static_cast<char>(std::tolower(static_cast<unsigned char>(*c)));
  }
  struct Unit {
    std::string_view name;
    double bytes;
  };
  constexpr std::array<Unit, 14> kUnits{{{"", 1},
                                         {"b", 1},
                                         {"k", 1024},
                                         {"m", 1048576},
                                         {"g", 1073741824},
                                         {"t", 1099511627776},
                                         {"kb", 1e3},
                                         {"mb", 1e6},
                                         {"gb", 1e9},
                                         {"tb", 1e12},
                                         {"kib", 1024},
                                         {"mib", 1048576},
                                         {"gib", 1073741824},
                                         {"tib", 1099511627776}}};
  const auto* found =
      std::find_if(kUnits.begin(), kUnits.end(), [&](const Unit& u) { return u.name == unit; });
  if (found == kUnits.end() || value * found->bytes > 9e18) refuse();
  return static_cast<uint64_t>(std::llround(value * found->bytes));
}

std::string format_size(uint64_t bytes) {
  constexpr std::array<const char*, 5> kNames{"B", "KiB", "MiB", "GiB", "TiB"};
  auto value = static_cast<double>(bytes);
  size_t unit = 0;
  while (value >= 1024 && unit + 1 < kNames.size()) {
    value /= 1024;
    ++unit;
  }
  std::array<char, 32> text{};
  std::snprintf(text.data(), text.size(), unit == 0 ? "%.0f %s" : "%.1f %s", value, kNames.at(unit));
  return text.data();
}

std::string format_count(int64_t count) {
  const std::string digits = std::to_string(count);
  std::string grouped;
  for (size_t at = 0; at < digits.size(); ++at) {
    const size_t left = digits.size() - at;
    if (at > 0 && left % 3 == 0 && digits[at - 1] != '-') grouped += ',';
    grouped += digits[at];
  }
  return grouped;
}

std::string format_seconds(double seconds) {
  const auto whole = std::lround(std::clamp(seconds, 0.0, 3.6e9));
  std::array<char, 32> text{};
  if (whole >= 3600) {
    std::snprintf(text.data(), text.size(), "%ldh%02ldm", whole / 3600, whole / 60 % 60);
  } else if (whole >= 60) {
    std::snprintf(text.data(), text.size(), "%ldm%02lds", whole / 60, whole % 60);
  } else {
    std::snprintf(text.data(), text.size(), "%lds", whole);
  }
  return text.data();
}

}  // namespace hsm
