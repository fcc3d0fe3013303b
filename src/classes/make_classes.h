#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "classes/word_classes.h"
#include "text/vocabulary.h"

namespace hsm {

/// How classes are made; names and values as in the section `classes` of a configuration.
struct ClassOptions {
  std::string method = "frequency";  ///< frequency | file
  std::string weight = "sqrt";       ///< frequency: bins of equal sum of count | sqrt
  /// frequency: number of bins, nothing: chosen. file: checked against the file's.
  std::optional<int64_t> clusters;
  /// frequency: the most frequent words at the root, nothing: chosen. file: these are put there, too.
  std::optional<int64_t> shortlist;
  std::string file;  ///< file: words and their classes
};

/// Classes of a vocabulary, the same for the same arguments. The width of the head and the tokens of a
/// training batch matter only where a size is chosen. UsageError for options that can't be met, DataError for
/// a malformed file.
WordClasses make_classes(const ClassOptions& options, const Vocabulary& vocabulary, int64_t head_dim,
                         int64_t batch_tokens);

}  // namespace hsm
