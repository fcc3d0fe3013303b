#include "decode/model_scorer.h"

namespace hsm {

std::span<const int32_t> ModelScorer::shortlist_words() const {
  const HeadLayout& layout = model_->layout();
  return {layout.word_of_row.data(), static_cast<size_t>(layout.shortlist())};
}

std::span<const int32_t> ModelScorer::cluster_words(int64_t cluster) const {
  const HeadLayout& layout = model_->layout();
  const int64_t first = layout.cluster_offsets[static_cast<size_t>(cluster)];
  const int64_t end = layout.cluster_offsets[static_cast<size_t>(cluster) + 1];
  return {layout.word_of_row.data() + first, static_cast<size_t>(end - first)};
}

WordPlace ModelScorer::place(int32_t word) const {
  const HeadLayout& layout = model_->layout();
  const int64_t row = layout.row_of_word[static_cast<size_t>(word)];
  const int32_t cluster = layout.cluster_of_row[static_cast<size_t>(row)];
  if (cluster == kShortlist) return {kShortlist, static_cast<int32_t>(row)};
  return {cluster, static_cast<int32_t>(row - layout.cluster_offsets[static_cast<size_t>(cluster)])};
}

void ModelScorer::advance(std::span<const int32_t> tokens, float* state, float* head, float* scratch) const {
  model_->run(tokens, 1, static_cast<int64_t>(tokens.size()), state, head, scratch);
}

void ModelScorer::root(const float* head, int64_t rows, float* log_probs) const {
  model_->root_log_probs(head, rows, log_probs);
}

void ModelScorer::leaves(int64_t cluster, std::span<const float* const> heads, float* log_probs) const {
  model_->leaf_log_probs(cluster, heads, log_probs);
}

}  // namespace hsm
