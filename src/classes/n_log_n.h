#pragma once
#include <cstddef>
#include <cstdint>
#include <vector>

namespace hsm {

/// The natural logarithm of a normal x > 0 within 2 units in the last place (near 1: of 1), by sums and
/// products alone, so that it has the same bits on every machine.
double portable_log(double x);

/// f(n) = n · ln(n − discount) for counts, f(0) = 0. Small counts come from a table.
class NLogN {
 public:
  /// 0 ≤ discount < 1.
  explicit NLogN(double discount = 0);

  [[nodiscard]] double operator()(uint32_t n) const { return n < table_.size() ? table_[n] : value(n); }
  /// f(n + more) − f(n).
  [[nodiscard]] double rise(uint32_t n, uint32_t more) const { return (*this)(n + more) - (*this)(n); }
  /// gain[i] += f(counts[i] + more) − f(counts[i]) for `size` counts.
  void add_rises(const uint32_t* counts, uint32_t more, double* gain, size_t size) const;

 private:
  static constexpr size_t kTabled = size_t{1} << 16;  // doubles: half of a usual second-level cache

  [[nodiscard]] double value(uint32_t n) const {
    return static_cast<double>(n) * portable_log(static_cast<double>(n) - discount_);
  }

  double discount_;
  std::vector<double> table_;
};

}  // namespace hsm
