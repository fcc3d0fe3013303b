#include "train/validation.h"

#include <map>
#include <nlohmann/json.hpp>

#include "eval/scoring.h"
#include "model/inference_model.h"
#include "model/model_directory.h"

namespace hsm {
namespace {

using Json = nlohmann::json;

// Metadata of model.safetensors.
constexpr const char* kRootScale = "root_scale";
constexpr const char* kClusterScale = "cluster_scale";
constexpr const char* kValidPerplexity = "valid_perplexity";

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

Calibration calibrate_saved(const std::filesystem::path& directory, const TokenFile& tokens,
                            const std::string& context, ThreadPool& pool) {
  const SavedModel saved = open_model(directory);
  std::map<std::string, std::string> metadata = saved.weights.metadata();
  if (metadata.contains(kRootScale)) {
    const auto number = [&](const char* key) { return Json::parse(metadata.at(key)).get<double>(); };
    return {{number(kRootScale), number(kClusterScale)}, number(kValidPerplexity)};
  }
  const Calibration found = calibrate(saved.shape, saved.layout, saved.weight_view(), saved.vocabulary,
                                      tokens, parse_context(context), pool);
  metadata[kRootScale] = Json(found.scales.root).dump();
  metadata[kClusterScale] = Json(found.scales.cluster).dump();
  metadata[kValidPerplexity] = Json(found.perplexity).dump();
  const ScaledWeights scaled(saved.shape, saved.layout, saved.weight_view(), found.scales);
  save_weights(directory, saved.shape, saved.layout, saved.vocabulary, scaled.view(), metadata);
  return found;
}

}  // namespace hsm
