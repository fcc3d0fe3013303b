#include "train/validation.h"

#include <cmath>

#include "eval/calibration.h"
#include "eval/scoring.h"
#include "model/inference_model.h"
#include "model/model_directory.h"

namespace hsm {
namespace {

Context parse_context(const std::string& name) {
  return name == "sentence" ? Context::sentence : Context::stream;
}

}  // namespace

Validation validate(TrainingEngine& engine, const TrainConfig& config, const Vocabulary& vocabulary,
                    const TokenFile& tokens) {
  const Context context = parse_context(config.context);
  const auto make_scorer = [&](const LogitScales& scales) {
    return engine.make_scorer(vocabulary.end_of_sentence(), scales);
  };
  Validation result;
  if (config.calibrate) result.scales = calibrate(make_scorer, vocabulary, tokens, context);
  const auto scorer = make_scorer(result.scales.value_or(LogitScales{}));
  const CorpusScore score = score_corpus(*scorer, vocabulary, tokens, context);
  result.perplexity = std::exp(-score.log_prob / static_cast<double>(score.words));  // infinite if need be
  return result;
}

double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool) {
  const SavedModel saved = open_model(directory);
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  return score_corpus(model, saved.vocabulary, tokens, parse_context(context), pool).perplexity();
}

}  // namespace hsm
