#pragma once
#include <cstdint>
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
  bool skip_blank_lines = false;  ///< else a line without words is an empty sentence
  /// For going on with a run: text that can be read only once (standard input, a pipe) is taken from its
  /// token file, and it is a DataError when that isn't there or doesn't fit. Else such text is always read
  /// anew.
  bool streams_from_cache = false;
};

struct VocabularyOptions {
  int64_t min_count = 1;  ///< words seen less often are `<unk>`
  int64_t max_size = 0;   ///< reserved symbols included; the rest is `<unk>`; 0: no limit
  std::string file;       ///< words as load_word_list() reads them, all kept; empty: the words of the text
};

/// Progress of a long read: bytes so far and in all (0 when unknown). May throw to end the read.
using ReadProgress = std::function<void(uint64_t done, uint64_t total)>;

/// Reads the training text once (so "-" works): counts words, makes the vocabulary and the token file.
/// `paths` may be globs. `cache` is the token file's path; its folder is made, the file written atomically.
/// Empty: no token file is made.
/// Memory is bounded by the number of different words.
///
/// The count of `<unk>` is that of all tokens that become it; 0 means that it would stay untrained, which the
/// caller should warn of. DataError for malformed text and for one without words; UsageError for options that
/// can't be met.
Vocabulary read_training_text(const std::vector<std::string>& paths, const CorpusOptions& options,
                              const VocabularyOptions& vocabulary, const std::filesystem::path& cache,
                              const ReadProgress& progress = {});

/// Token file of `paths` (which may be globs) under a known vocabulary. The one at `cache` is used again when
/// it is undamaged and was made from the same files (name, size, time of change), options and vocabulary. A
/// text without lines gives an empty one.
TokenFile tokenize(const std::vector<std::string>& paths, const CorpusOptions& options,
                   const Vocabulary& vocabulary, const std::filesystem::path& cache,
                   const ReadProgress& progress = {});

}  // namespace hsm
