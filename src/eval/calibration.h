#pragma once
#include <vector>

#include "base/thread_pool.h"
#include "eval/scoring.h"
#include "model/inference_model.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Factors of the head's logits, at its root and within clusters: the inverses of softmax temperatures.
struct LogitScales {
  double root = 1;
  double cluster = 1;
};

/// Weights whose head gives scaled logits. Owns the head's parameters; the others are those it was made from,
/// which must outlive it.
class ScaledWeights {
 public:
  ScaledWeights(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                const LogitScales& scales);

  [[nodiscard]] const WeightView& view() const noexcept { return view_; }

 private:
  std::vector<std::vector<float>> head_;
  WeightView view_;
};

struct Calibration {
  LogitScales scales;
  double perplexity = 0;  ///< of the text, with the scales
};

/// The scales that make `tokens` most probable. A model that was trained for long on few words is surer than
/// it is right; such a scale, found on text it has not seen, mends that (Guo, Pleiss, Sun and Weinberger, "On
/// calibration of modern neural networks", ICML 2017). Scores the text about eight times. The model must not be
/// tied.
Calibration calibrate(const ModelShape& shape, const HeadLayout& layout, const WeightView& weights,
                      const Vocabulary& vocabulary, const TokenFile& tokens, Context context,
                      ThreadPool& pool);

}  // namespace hsm
