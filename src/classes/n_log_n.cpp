#include "classes/n_log_n.h"

#include <algorithm>
#include <array>
#include <bit>
#include <vector>

namespace hsm {
namespace {

// 1 / (2 i + 1): of artanh(z) / z. For |z| ≤ 0.172, the first term left out is below 2^-63.
constexpr std::array<double, 12> kSeries = [] {
  std::array<double, 12> series{};
  for (size_t i = 0; i < series.size(); ++i) series[i] = 1.0 / static_cast<double>(2 * i + 1);
  return series;
}();

}  // namespace

double portable_log(double x) {
  // x = m · 2^e with m in [√½, √2), ln m = 2 artanh((m − 1) / (m + 1)) by its series.
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kRoot2 = 1.41421356237309504880;
  const auto bits = std::bit_cast<uint64_t>(x);
  auto exponent = static_cast<int>((bits >> 52) & 0x7FF) - 1023;
  auto m = std::bit_cast<double>((bits & 0xFFFFFFFFFFFFF) | 0x3FF0000000000000);
  if (m > kRoot2) {
    m *= 0.5;
    ++exponent;
  }
  const double z = (m - 1) / (m + 1);
  const double square = z * z;
  double sum = 0;
  for (size_t term = kSeries.size(); term-- > 0;) sum = sum * square + kSeries[term];
  return exponent * kLn2 + 2 * z * sum;
}

NLogN::NLogN(double discount) : discount_(discount), table_(kTabled) {
  for (uint32_t n = 1; n < kTabled; ++n) table_[n] = value(n);
}

void NLogN::add_rises(const uint32_t* counts, uint32_t more, double* gain, size_t size) const {
  const double* table = table_.data();
  const auto tabled = static_cast<uint32_t>(kTabled) - std::min(more, static_cast<uint32_t>(kTabled));
  for (size_t i = 0; i < size; ++i) {
    const uint32_t n = counts[i];
    gain[i] += n < tabled ? table[n + more] - table[n] : rise(n, more);
  }
}

}  // namespace hsm
