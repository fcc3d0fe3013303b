#include "eval/calibration.h"

#include <algorithm>
#include <cmath>
#include <span>
#include <string_view>

#include "eval/scale_search.h"

namespace hsm {
namespace {

constexpr int kMostPasses = 20;

/// Parameter `name` of the head, times the scales. Word rows of the shortlist belong to the root.
std::vector<float> scaled(std::string_view name, const TensorSpec& spec, const float* values,
                          const HeadLayout& layout, const LogitScales& scales) {
  const int64_t rows = spec.shape.front();
  const int64_t width = spec.shape.size() > 1 ? spec.shape.back() : 1;
  std::vector<float> result(values, values + rows * width);
  const bool of_words = name.starts_with("head.word.");
  const auto root_end = result.begin() + (of_words ? layout.shortlist() : rows) * width;
  const auto times = [](double scale) {
    return [scale](float value) { return static_cast<float>(scale * static_cast<double>(value)); };
  };
  std::transform(result.begin(), root_end, result.begin(), times(scales.root));
  std::transform(root_end, result.end(), root_end, times(scales.cluster));
  return result;
}

}  // namespace

ScaledWeights::ScaledWeights(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                             const LogitScales& scales)
    : view_(weights) {
  const std::vector<TensorSpec> specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    if (!specs[i].name.starts_with("head.")) continue;
    head_.push_back(scaled(specs[i].name, specs[i], weights.tensors[i], layout, scales));
    view_.tensors[i] = head_.back().data();
  }
}

Calibration calibrate(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                      const Vocabulary& vocabulary, const TokenFile& tokens, Context context,
                      ThreadPool& pool) {
  ScaleSearch root;
  ScaleSearch cluster;
  int64_t words = 0;
  for (int pass = 0; pass < kMostPasses && !(root.settled() && cluster.settled()); ++pass) {
    const LogitScales scales{root.next(), cluster.next()};
    const ScaledWeights trial(shape, layout, weights, scales);
    const InferenceModel model(shape, layout, trial.view());
    const CorpusScore score = score_corpus(model, vocabulary, tokens, context, pool);
    root.add(scales.root, -score.log_prob_root);
    cluster.add(scales.cluster, score.log_prob_root - score.log_prob);
    words = score.words;
  }
  return {{root.best(), cluster.best()},
          std::exp((root.least() + cluster.least()) / static_cast<double>(std::max<int64_t>(1, words)))};
}

}  // namespace hsm
