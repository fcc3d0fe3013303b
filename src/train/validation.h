#pragma once
#include <filesystem>
#include <string>

#include "base/thread_pool.h"
#include "eval/calibration.h"
#include "text/token_file.h"
#include "text/vocabulary.h"
#include "train/training_engine.h"

namespace hsm {

/// Perplexity of `tokens` under the weights of `engine` as they are, through the code that scores saved
/// models. `context`: stream or sentence.
double perplexity_of(TrainingEngine& engine, const Vocabulary& vocabulary, const TokenFile& tokens,
                     const std::string& context);

/// Perplexity of `tokens` under the model saved in `directory`.
double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool);

/// Scales the logits of the model saved in `directory` so that `tokens` get most probable, and saves it there
/// again with a note of the scales. One with such a note stays as it is, so that a run ends in the same bits
/// whether or not it ended before.
Calibration calibrate_saved(const std::filesystem::path& directory, const TokenFile& tokens,
                            const std::string& context, ThreadPool& pool);

}  // namespace hsm
