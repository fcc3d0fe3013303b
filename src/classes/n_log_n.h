#pragma once
#include <cstddef>
#include <cstdint>
#include <span>

namespace hsm {

/// The natural logarithm of x ≥ 1 within 2 units in the last place, by sums and products alone, so that it
/// has the same bits on every machine.
double portable_log(double x);

/// f(n) = n · ln n for counts, f(0) = 0. Small counts come from a table.
class NLogN {
 public:
  NLogN() : table_(table()) {}

  [[nodiscard]] double operator()(uint32_t n) const {
    return n < table_.size() ? table_[n] : static_cast<double>(n) * portable_log(static_cast<double>(n));
  }
  /// f(n + more) − f(n).
  [[nodiscard]] double rise(uint32_t n, uint32_t more) const { return (*this)(n + more) - (*this)(n); }
  /// gain[i] += f(counts[i] + more) − f(counts[i]) for `size` counts.
  void add_rises(const uint32_t* counts, uint32_t more, double* gain, size_t size) const;

 private:
  static constexpr size_t kTabled = size_t{1} << 16;  // doubles: half of a usual second-level cache

  static std::span<const double> table();

  std::span<const double> table_;
};

}  // namespace hsm
