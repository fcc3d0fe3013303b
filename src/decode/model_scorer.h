#pragma once
#include "decode/scorer.h"
#include "model/inference_model.h"

namespace hsm {

/// The scorer of a model on the CPU: pointers into the model and calls of its kernels, no memory of its own.
class ModelScorer : public Scorer {
 public:
  /// The model must outlive the object. `end_of_sentence` is the vocabulary's.
  ModelScorer(const InferenceModel& model, int32_t end_of_sentence) : model_(&model), end_(end_of_sentence) {}

  [[nodiscard]] int64_t words() const override { return model_->layout().words(); }
  [[nodiscard]] int64_t shortlist() const override { return model_->layout().shortlist(); }
  [[nodiscard]] int64_t clusters() const override { return model_->layout().clusters(); }
  [[nodiscard]] std::span<const int32_t> shortlist_words() const override;
  [[nodiscard]] std::span<const int32_t> cluster_words(int64_t cluster) const override;
  [[nodiscard]] WordPlace place(int32_t word) const override;
  [[nodiscard]] int32_t end_of_sentence() const override { return end_; }
  [[nodiscard]] int64_t state_size() const override { return model_->shape().state_size(); }
  [[nodiscard]] int64_t head_size() const override { return model_->shape().head_dim(); }
  [[nodiscard]] int64_t scratch_size(int64_t rows) const override { return model_->run_scratch(1, rows); }

  void advance(std::span<const int32_t> tokens, float* state, float* head, float* scratch) const override;
  void root(const float* head, int64_t rows, float* log_probs) const override;
  void leaves(int64_t cluster, std::span<const float* const> heads, float* log_probs) const override;

 private:
  const InferenceModel* model_;
  int32_t end_;
};

}  // namespace hsm
