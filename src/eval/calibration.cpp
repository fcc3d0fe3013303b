#include "eval/calibration.h"

#include "eval/scale_search.h"

namespace hsm {
namespace {

constexpr int64_t kWords = int64_t{1} << 14;
constexpr int kMostPasses = 20;

}  // namespace

LogitScales calibrate(const ScaledScorer& make_scorer, const Vocabulary& vocabulary, const TokenFile& tokens,
                      Context context) {
  ScaleSearch root;
  ScaleSearch cluster;
  for (int pass = 0; pass < kMostPasses && !(root.settled() && cluster.settled()); ++pass) {
    const LogitScales scales{root.next(), cluster.next()};
    const auto scorer = make_scorer(scales);
    const CorpusScore score = score_corpus(*scorer, vocabulary, tokens, context, kWords);
    root.add(scales.root, -score.log_prob_root);
    cluster.add(scales.cluster, score.log_prob_root - score.log_prob);
  }
  return {root.best(), cluster.best()};
}

}  // namespace hsm
