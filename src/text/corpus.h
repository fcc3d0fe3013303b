#pragma once
#include <filesystem>
#include <functional>
#include <string>
#include <vector>

#include "text/lines.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

struct CorpusOptions {
  TextOptions text;
  bool skip_blank_lines = false;
};

struct VocabularyOptions {
  int64_t min_count = 1;
  int64_t max_size = 0;  ///< reserved symbols included; 0: no limit
  std::string file;      ///< a word a line (a count after a tab is ignored); empty: all words of the text
};

/// Progress of a long read: bytes so far and in all (0 when unknown).
using ReadProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Reads the training text once (so "-" works): counts words, makes the vocabulary and the token file.
/// `cache` is the token file's path; written atomically.
Vocabulary read_training_text(const std::vector<std::string>& paths, const CorpusOptions& options,
                              const VocabularyOptions& vocabulary, const std::filesystem::path& cache,
                              const ReadProgress& progress = {});

/// Token file of `paths` under a known vocabulary. The one at `cache` is used again when it was made from
/// the same files (name, size, time of change), options and vocabulary.
TokenFile tokenize(const std::vector<std::string>& paths, const CorpusOptions& options,
                   const Vocabulary& vocabulary, const std::filesystem::path& cache,
                   const ReadProgress& progress = {});

}  // namespace hsm
