#pragma once
#include <functional>
#include <memory>

#include "eval/scoring.h"
#include "eval/text_scorer.h"
#include "model/scaled_weights.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Makes a scorer of a model whose logits have these scales.
using ScaledScorer = std::function<std::unique_ptr<TextScorer>(const LogitScales&)>;

/// How far scales are expected to lie from 1: the standard deviation of their logarithms. Against some
/// thousand words that means nothing; where only a few words speak for a scale, it keeps them from making it
/// as large as they like.
inline constexpr double kScaleSpread = 0.2;

/// The scales, within about 2 %, that are most probable after the first 16,384 words of `tokens`. A model
/// that was trained for long on little text is surer than it is right; scales found on text that it has not
/// seen mend that (Guo, Pleiss, Sun and Weinberger, "On calibration of modern neural networks", ICML 2017).
/// Scores those words about five times, and 20 times at most.
LogitScales calibrate(const ScaledScorer& make_scorer, const Vocabulary& vocabulary, const TokenFile& tokens,
                      Context context);

}  // namespace hsm
