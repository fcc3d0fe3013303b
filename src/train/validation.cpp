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
                     const std::string& context, ThreadPool& pool) {
  const InferenceModel frozen(engine.shape(), engine.layout(), engine.weights());
  return score_corpus(frozen, vocabulary, tokens, parse_context(context), pool).perplexity();
}

double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool) {
  const SavedModel saved = open_model(directory);
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  return score_corpus(model, saved.vocabulary, tokens, parse_context(context), pool).perplexity();
}

}  // namespace hsm
