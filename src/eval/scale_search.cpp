#include "eval/scale_search.h"

#include <cmath>
#include <iterator>

namespace hsm {
namespace {

const double kFirstStep = std::log(1.25);
constexpr double kClose = 0.01;

}  // namespace

std::optional<double> ScaleSearch::next() const {
  if (values_.empty()) return 1;
  if (values_.size() == 1) return std::exp(-kFirstStep);
  const auto middle = values_.find(std::log(best_));
  const auto after = std::next(middle);
  if (middle == values_.begin()) return std::exp(middle->first - kFirstStep);
  const auto before = std::prev(middle);
  if (after == values_.end()) return std::exp(middle->first + kFirstStep);
  // The vertex of the parabola through the three lies between the outer ones, as their values are no less.
  const double left = (middle->second - before->second) / (middle->first - before->first);
  const double right = (after->second - middle->second) / (after->first - middle->first);
  const double bend = (right - left) / (after->first - before->first);
  if (!(bend > 0)) return std::nullopt;
  const double vertex = (before->first + middle->first - left / bend) / 2;
  if (std::abs(vertex - middle->first) < kClose) return std::nullopt;
  return std::exp(vertex);
}

void ScaleSearch::add(double scale, double value) {
  if (values_.empty() || value < least_) {
    best_ = scale;
    least_ = value;
  }
  values_.emplace(std::log(scale), value);
}

}  // namespace hsm
