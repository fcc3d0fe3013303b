#include "eval/calibration.h"

#include <cmath>
#include <optional>

#include "eval/scale_search.h"

namespace hsm {
namespace {

constexpr int64_t kWords = int64_t{1} << 14;
constexpr int kMostPasses = 20;

// Less the logarithm of the scale's prior density, up to a constant.
double penalty(double scale) {
  const double deviation = std::log(scale) / kScaleSpread;
  return deviation * deviation / 2;
}

}  // namespace

LogitScales calibrate(const ScaledScorer& make_scorer, const Vocabulary& vocabulary, const TokenFile& tokens,
                      Context context) {
  ScaleSearch root;
  ScaleSearch cluster;
  for (int pass = 0; pass < kMostPasses; ++pass) {
    const std::optional<double> next_root = root.next();
    const std::optional<double> next_cluster = cluster.next();
    if (!next_root && !next_cluster) break;
    const LogitScales scales{static_cast<float>(next_root.value_or(root.best())),
                             static_cast<float>(next_cluster.value_or(cluster.best()))};
    const auto scorer = make_scorer(scales);
    const CorpusScore score = score_corpus(*scorer, vocabulary, tokens, context, kWords);
    if (next_root) root.add(scales.root, penalty(scales.root) - score.log_prob_root);
    if (next_cluster) {
      cluster.add(scales.cluster, penalty(scales.cluster) + score.log_prob_root - score.log_prob);
    }
  }
  return {static_cast<float>(root.best()), static_cast<float>(cluster.best())};
}

}  // namespace hsm
