#pragma once
#include <cstdint>
#include <optional>
#include <vector>

#include "classes/word_classes.h"
#include "model/inference_model.h"
#include "model/model_shape.h"

namespace hsm {

/// Factors of the head's logits, at its root and within clusters: the inverses of softmax temperatures.
struct LogitScales {
  float root = 1;
  float cluster = 1;

  bool operator==(const LogitScales&) const = default;
};

/// How many rows of a parameter of the head, the first ones, give logits of the root; the others give those
/// within clusters. Nothing for other parameters.
std::optional<int64_t> root_rows(const TensorSpec& spec, const HeadLayout& layout);

/// Weights whose head gives scaled logits. Owns the head's parameters unless both scales are 1; the others
/// are those it was made from, which must outlive it. For a tied model the scales must be 1, as its input
/// reads the head's words.
class ScaledWeights {
 public:
  ScaledWeights(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                const LogitScales& scales);

  /// Stays valid when the object is moved.
  [[nodiscard]] const WeightView& view() const noexcept { return view_; }

 private:
  std::vector<std::vector<float>> head_;
  WeightView view_;
};

}  // namespace hsm
