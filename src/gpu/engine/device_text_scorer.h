#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <string>
#include <vector>

#include "classes/word_classes.h"
#include "eval/text_scorer.h"
#include "gpu/engine/recurrent_layers.h"
#include "kernels/device/device_kernels.h"
#include "model/inference_model.h"
#include "model/model_shape.h"

namespace hsm {

/// Scores text where the weights lie. A stream goes step by step, so that sentences, of which many run side
/// by side, are what a device is good at. Its sums are LibTorch's and the device kernels': scores may differ
/// in the last bits with the company a sentence is in.
class DeviceTextScorer final : public TextScorer {
 public:
  /// `weights`: float32, one for each of parameter_specs(), in its order, all on one device; not changed
  /// while the object lives. `kernels` compute in float32 there. The layout outlives the object.
  DeviceTextScorer(const ModelShape& shape, const HeadLayout& layout, std::vector<at::Tensor> weights,
                   std::shared_ptr<kernels::device::DeviceKernels> kernels, int32_t end_of_sentence);

  [[nodiscard]] StreamState start() const override;
  void score_stream(std::span<const int32_t> words, StreamState& state,
                    std::span<TokenScore> scores) override;
  void score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                       std::span<TokenScore> scores) override;

 private:
  struct Sentence {
    int64_t first = 0;
    int64_t length = 0;
  };
  /// A window of [steps, streams] words as rows of the head, and where their scores go; no target, no score.
  struct Window {
    int64_t steps = 0;
    int64_t streams = 0;
    std::vector<int32_t> inputs;
    std::vector<int32_t> targets;
    std::vector<TokenScore*> scores;

    void clear(int64_t stream_count);
    void add(int32_t input, int32_t target, TokenScore* score);
  };

  [[nodiscard]] int32_t row_of(int32_t word) const;
  [[nodiscard]] const at::Tensor& weight(const std::string& name) const;
  void score_group(std::span<const Sentence> group, std::span<const int32_t> words,
                   std::span<TokenScore> scores);
  void run_window();
  [[nodiscard]] at::Tensor head_inputs(const at::Tensor& rows);

  ModelShape shape_;
  const HeadLayout* layout_;
  std::vector<at::Tensor> weights_;
  std::shared_ptr<kernels::device::DeviceKernels> kernels_;
  int32_t end_of_sentence_;
  int64_t largest_cluster_ = 0;
  RecurrentLayers layers_;
  at::Tensor cluster_offsets_, cluster_of_row_;
  Window window_;
};

/// A scorer with its own copy of `weights` on `device`.
std::unique_ptr<TextScorer> make_device_text_scorer(const ModelShape& shape, const HeadLayout& layout,
                                                    const WeightView& weights, at::Device device,
                                                    std::shared_ptr<kernels::device::DeviceKernels> kernels,
                                                    int32_t end_of_sentence);

}  // namespace hsm
