#pragma once
#include <functional>
#include <memory>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "classes/step_cost.h"
#include "classes/word_classes.h"
#include "config/config.h"
#include "text/batch_source.h"
#include "text/token_file.h"
#include "text/vocabulary.h"
#include "train/run_directory.h"
#include "train/training_state.h"

namespace hsm {

/// All that a run reads: vocabulary, classes as the order of the head's rows, texts as token files.
struct TrainingData {
  Vocabulary vocabulary;
  HeadLayout layout;
  TokenFile train;
  std::optional<TokenFile> valid;
  std::optional<TokenFile> test;
  std::string hash;        ///< of the training tokens
  std::string valid_hash;  ///< of the validation tokens; empty: there are none

  /// Refers to this object.
  [[nodiscard]] std::unique_ptr<BatchSource> batches(const Config& config) const;
};

/// As many threads as runtime.threads says, 0: as many as there are.
ThreadPool make_pool(const Config& config);

/// Reads the texts, makes vocabulary and classes. What it writes to the run's directory, token files, makes
/// no run of it: that begins with save_words(). Throws ReadingStopped when `stop` says so.
TrainingData prepare_data(const Config& config, const RunDirectory& directory,
                          const std::function<bool()>& stop);

/// Writes vocabulary and classes to the run's directory.
void save_words(const TrainingData& data, const RunDirectory& directory);

/// As prepare_data for a run that goes on: vocabulary and classes are those of its directory. DataError when
/// they or the training text are no longer those that `state` was reached with.
TrainingData reopen_data(const Config& config, const RunDirectory& directory, const TrainingState& state,
                         const std::function<bool()>& stop);

/// How a training step uses the head, for the cost of classes.
StepShape step_shape(const Config& config, const Vocabulary& vocabulary);

/// The vocabulary and classes that prepare_data would make.
struct TextClasses {
  Vocabulary vocabulary;
  WordClasses classes;
  TokenFile train;  ///< no longer in any folder

  /// class_bigram_likelihood() of the training text. Throws ReadingStopped when `stop` says so.
  [[nodiscard]] double log_likelihood(const Config& config, const std::function<bool()>& stop) const;
};
/// Leaves nothing on disk. Throws ReadingStopped when `stop` says so, ResourceError when there is no room for
/// the tokens in data.cache, or without it in the folder for temporary files.
TextClasses read_classes(const Config& config, const std::function<bool()>& stop);

}  // namespace hsm
