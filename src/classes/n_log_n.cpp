#include "classes/n_log_n.h"

#include <algorithm>
#include <bit>

namespace hsm {

double portable_log(double x) {
  // x = m · 2^e with m in [√½, √2), ln m = 2 artanh((m − 1) / (m + 1)) by its series.
  constexpr double kLn2 = 0.693147180559945309417;
  constexpr double kRoot2 = 1.41421356237309504880;
  constexpr int kTerms = 12;  // |z| ≤ 0.172, so the first term left out is below 2^-63
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
  for (int term = kTerms - 1; term >= 0; --term) sum = sum * square + 1.0 / (2 * term + 1);
  return exponent * kLn2 + 2 * z * sum;
}

NLogN::NLogN() : table_(kTabled) {
  for (size_t n = 1; n < kTabled; ++n) {
    table_[n] = static_cast<double>(n) * portable_log(static_cast<double>(n));
  }
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
