#pragma once
#include <filesystem>
#include <string>

#include "base/thread_pool.h"
#include "text/token_file.h"
#include "text/vocabulary.h"
#include "train/training_engine.h"

namespace hsm {

/// Perplexity of `tokens` under the weights of `engine` as they are, with scaled logits, through the code
/// that scores saved models. `context`: stream or sentence.
double perplexity_of(TrainingEngine& engine, const LogitScales& scales, const Vocabulary& vocabulary,
                     const TokenFile& tokens, const std::string& context);

/// The scales that suit `tokens`: see calibrate() in eval/.
LogitScales scales_for(TrainingEngine& engine, const Vocabulary& vocabulary, const TokenFile& tokens,
                       const std::string& context);

/// Perplexity of `tokens` under the model saved in `directory`.
double perplexity_of(const std::filesystem::path& directory, const TokenFile& tokens,
                     const std::string& context, ThreadPool& pool);

}  // namespace hsm
