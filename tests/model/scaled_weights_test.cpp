#include "model/scaled_weights.h"

#include <gtest/gtest.h>

#include "model/sample_models.h"

namespace hsm {
namespace {

// Differences of log-probabilities are differences of logits.
void expect_scaled(const std::vector<float>& plain, const std::vector<float>& scaled, double factor) {
  for (size_t i = 1; i < plain.size(); ++i) {
    EXPECT_NEAR(scaled[i] - scaled[0], factor * (plain[i] - plain[0]), 1e-5);
  }
}

TEST(ScaledWeights, ScaleTheLogitsOfRootAndClusters) {
  for (const int64_t shortlist : {0, 5}) {
    const SampleModel sample{"scaled", Cell::lstm, {13, 11}, 9, false, shortlist, {2, 16, 1, 7}};
    const ModelOracle oracle = sample.make(1);
    const HeadLayout& layout = oracle.layout();
    const InferenceModel plain(oracle.shape(), layout, oracle.weight_view());
    // Moved, as its view must stay valid then.
    ScaledWeights made(oracle.shape(), layout, oracle.weight_view(), {2, 0.5});
    const ScaledWeights weights = std::move(made);
    const InferenceModel scaled(oracle.shape(), layout, weights.view());

    std::vector<float> head(static_cast<size_t>(oracle.shape().head_dim()));
    for (size_t i = 0; i < head.size(); ++i) head[i] = 0.1F * static_cast<float>(i) - 0.4F;
    std::vector<float> before(static_cast<size_t>(layout.shortlist() + layout.clusters()));
    std::vector<float> after(before.size());
    plain.root_log_probs(head.data(), 1, before.data());
    scaled.root_log_probs(head.data(), 1, after.data());
    expect_scaled(before, after, 2);
    const float* input = head.data();
    for (int64_t c = 0; c < layout.clusters(); ++c) {
      const size_t size = static_cast<size_t>(layout.cluster_offsets[static_cast<size_t>(c) + 1] -
                                              layout.cluster_offsets[static_cast<size_t>(c)]);
      before.resize(size);
      after.resize(size);
      plain.leaf_log_probs(c, {&input, 1}, before.data());
      scaled.leaf_log_probs(c, {&input, 1}, after.data());
      expect_scaled(before, after, 0.5);
    }
  }
}

TEST(ScaledWeights, ScalesOfOneCopyNothing) {
  const ModelOracle oracle = SampleModel{"plain", Cell::gru, {7}, 7, true, 3, {4, 2}}.make(1);
  const ScaledWeights weights(oracle.shape(), oracle.layout(), oracle.weight_view(), {});
  EXPECT_EQ(weights.view().tensors, oracle.weight_view().tensors);
}

}  // namespace
}  // namespace hsm
