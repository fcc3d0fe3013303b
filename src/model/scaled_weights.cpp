#include "model/scaled_weights.h"

#include <algorithm>

namespace hsm {
namespace {

// A parameter of the head, times the scales. The words' first rows are the shortlist's: they stand at the
// root.
std::vector<float> scaled(const TensorSpec& spec, const float* values, const HeadLayout& layout,
                          const LogitScales& scales) {
  const int64_t rows = spec.shape.front();
  const int64_t width = spec.shape.size() > 1 ? spec.shape.back() : 1;
  const int64_t root_rows = spec.name.starts_with("head.word.") ? layout.shortlist() : rows;
  std::vector<float> result(static_cast<size_t>(rows * width));
  const auto times = [](double scale) {
    return [scale](float value) { return static_cast<float>(scale * static_cast<double>(value)); };
  };
  float* rest = std::transform(values, values + root_rows * width, result.data(), times(scales.root));
  std::transform(values + root_rows * width, values + rows * width, rest, times(scales.cluster));
  return result;
}

}  // namespace

ScaledWeights::ScaledWeights(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                             const LogitScales& scales)
    : view_(weights) {
  if (scales == LogitScales{}) return;
  const std::vector<TensorSpec> specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].name.starts_with("head.")) continue;
    head_.push_back(scaled(specs[i], weights.tensors[i], layout, scales));
    view_.tensors[i] = head_.back().data();
  }
}

}  // namespace hsm
