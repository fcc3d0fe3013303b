#include "model/scaled_weights.h"

#include <algorithm>

namespace hsm {
namespace {

// A parameter of the head, times the scales.
std::vector<float> scaled(const TensorSpec& spec, const float* values, int64_t root_rows,
                          const LogitScales& scales) {
  const int64_t rows = spec.shape.front();
  const int64_t width = spec.shape.size() > 1 ? spec.shape.back() : 1;
  std::vector<float> result(static_cast<size_t>(rows * width));
  const auto times = [](float scale) { return [scale](float value) { return scale * value; }; };
  float* rest = std::transform(values, values + root_rows * width, result.data(), times(scales.root));
  std::transform(values + root_rows * width, values + rows * width, rest, times(scales.cluster));
  return result;
}

}  // namespace

std::optional<int64_t> root_rows(const TensorSpec& spec, const HeadLayout& layout) {
  if (!spec.name.starts_with("head.")) return std::nullopt;
  return spec.name.starts_with("head.word.") ? layout.shortlist() : spec.shape.front();
}

ScaledWeights::ScaledWeights(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                             const LogitScales& scales)
    : view_(weights) {
  if (scales == LogitScales{}) return;
  const std::vector<TensorSpec> specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    const std::optional<int64_t> at_root = root_rows(specs[i], layout);
    if (!at_root) continue;
    head_.push_back(scaled(specs[i], weights.tensors[i], *at_root, scales));
    view_.tensors[i] = head_.back().data();
  }
}

}  // namespace hsm
