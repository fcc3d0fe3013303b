#include "train/validation.h"

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

double perplexity_of(TrainingEngine& engine, const LogitScales& scales, const Vocabulary& vocabulary,
                     const TokenFile& tokens, const std::string& context) {
  const auto scorer = engine.make_scorer(vocabulary.end_of_sentence(), scales);
  return score_corpus(*scorer, vocabulary, tokens, parse_context(context)).perplexity();
}

LogitScales scales_for(TrainingEngine& engine, const Vocabulary& vocabulary, const TokenFile& tokens,
                       const std::string& context) {
  const auto make_scorer = [&](const LogitScales& scales) {
    return engine.make_scorer(vocabulary.end_of_sentence(), scales);
  };
  return calibrate(make_scorer, vocabulary, tokens, parse_context(context));
}

double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool) {
  const SavedModel saved = open_model(directory);
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  return score_corpus(model, saved.vocabulary, tokens, parse_context(context), pool).perplexity();
}

}  // namespace hsm
