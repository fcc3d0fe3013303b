#pragma once
#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "classes/word_classes.h"
#include "kernels/device/decode_kernels.h"
#include "model/inference_model.h"
#include "model/model_shape.h"

namespace hsm {

/// A model's weights in float32 on a device, its own copy, and the kernels that read them there.
struct DecodeModel {
  struct Layer {
    const float* input_weight = nullptr;  ///< [gates · hidden, layer's input]
    const float* state_weight = nullptr;  ///< [gates · hidden, hidden]
    const float* input_bias = nullptr;
    const float* state_bias = nullptr;
  };

  /// UsageError when the end symbol does not lie in the shortlist. The layout outlives the object.
  DecodeModel(const ModelShape& model_shape, const HeadLayout& head_layout, const WeightView& view,
              int32_t end_symbol, at::Device place, std::shared_ptr<kernels::device::DecodeKernels> there);

  ModelShape shape;
  const HeadLayout* layout;
  int32_t end_of_sentence;
  at::Device device;
  std::shared_ptr<kernels::device::DecodeKernels> kernels;

  const float* embedding = nullptr;  ///< [V, embedding], by the head's rows
  std::vector<Layer> layers;
  const float* projection = nullptr;  ///< [head's width, last hidden]; null where there is none
  const float* no_bias = nullptr;     ///< zeros, for the projection
  kernels::device::DecodeHead head;   ///< without words that are forbidden

  /// Where a word stands at the root, and within its cluster; leaf −1 where the column decides.
  struct Place {
    int32_t column = 0;
    int32_t cluster = -1;
    int32_t leaf = -1;
  };
  [[nodiscard]] Place place(int32_t word) const;
  /// The row of a word's vectors. DataError for a token that is not in the vocabulary.
  [[nodiscard]] int32_t row_of(int32_t word) const;
  [[nodiscard]] int64_t cluster_words(int64_t cluster) const;
  /// Clusters of several words.
  [[nodiscard]] int64_t ragged_clusters() const;
  /// Of the weights' copy.
  [[nodiscard]] uint64_t bytes() const;

 private:
  const float* upload(const float* values, const std::vector<int64_t>& size);

  std::vector<at::Tensor> memory_;
};

}  // namespace hsm
