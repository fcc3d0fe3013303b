#pragma once
#include <map>
#include <optional>

namespace hsm {

/// Finds the scale above 0 at which a function is least that is convex in it, from values at scales it asks
/// for, 1 the first: out by steps of a factor 1.25 until the least value has larger ones on both sides, then
/// in by parabolas over the logarithm of the scale.
class ScaleSearch {
 public:
  /// Where to take the next value; nothing when best() is known within about 2 %.
  [[nodiscard]] std::optional<double> next() const;
  void add(double scale, double value);

  /// Where the least of the values was found, the first of equal ones. After the first add().
  [[nodiscard]] double best() const { return best_; }

 private:
  std::map<double, double> values_;  // by the logarithm of the scale
  double best_ = 1;
  double least_ = 0;
};

}  // namespace hsm
