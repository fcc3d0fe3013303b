#include "train/validation.h"

#include "eval/scoring.h"
#include "model/inference_model.h"
#include "model/model_directory.h"

namespace hsm {
namespace {

Context parse_context(const std::string& name) {
  return name == "sentence" ? Context::sentence : Context::stream;
}

}  // namespace

double perplexity_of(TrainingEngine& engine, const Vocabulary& vocabulary, const TokenFile& tokens,
                     const std::string& context) {
  const auto scorer = engine.make_scorer(vocabulary.end_of_sentence());
  return score_corpus(*scorer, vocabulary, tokens, parse_context(context)).perplexity();
}

double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool) {
  const SavedModel saved = open_model(directory);
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  return score_corpus(model, saved.vocabulary, tokens, parse_context(context), pool).perplexity();
}

}  // namespace hsm
