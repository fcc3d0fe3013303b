#pragma once
#include <filesystem>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "config/config.h"
#include "model/scaled_weights.h"
#include "text/token_file.h"
#include "text/vocabulary.h"
#include "train/training_engine.h"

namespace hsm {

/// What a validation measured.
struct Validation {
  double perplexity = 0;              ///< infinite where it is beyond a double
  std::optional<LogitScales> scales;  ///< of the logits, with config.calibrate
};

/// Scores `tokens` under the weights of `engine` as they are, through the code that scores saved models; with
/// config.calibrate under the scales that suit them (calibrate() in eval/).
Validation validate(TrainingEngine& engine, const TrainConfig& config, const Vocabulary& vocabulary,
                    const TokenFile& tokens);

/// Perplexity of `tokens` under the model saved in `directory`. `context`: stream or sentence.
double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool);

}  // namespace hsm
