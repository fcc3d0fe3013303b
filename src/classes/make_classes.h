#pragma once
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "base/thread_pool.h"
#include "classes/exchange.h"
#include "classes/step_cost.h"
#include "classes/word_classes.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// How classes are made; names and values as in the section `classes` of a configuration.
struct ClassOptions {
  std::string method = "exchange";  ///< exchange | frequency | file
  std::string weight = "sqrt";      ///< frequency: bins of equal sum of count | sqrt
  /// exchange, frequency: number of clusters, nothing: chosen. file: checked against the file's.
  std::optional<int64_t> clusters;
  /// exchange, frequency: the most frequent words at the root, nothing: chosen. file: these are put there,
  /// too.
  std::optional<int64_t> shortlist;
  std::optional<int64_t> largest;  ///< exchange: most words of a cluster, nothing: chosen
  int64_t rounds = 20;             ///< exchange: at most
  std::string file;                ///< file: words and their classes
};

/// The text that classes are learned from, and what works on it.
struct ClassText {
  const TokenFile* tokens = nullptr;
  ThreadPool* pool = nullptr;
  ExchangeReport report;
};

/// Classes of a vocabulary, the same for the same arguments, whatever the number of threads. The step matters
/// only where a size is chosen and to what a cluster may cost. `text` may be empty where the method doesn't
/// read it. UsageError for options that can't be met, DataError for a malformed file.
WordClasses make_classes(const ClassOptions& options, const Vocabulary& vocabulary, const StepShape& step,
                         const ClassText& text);

}  // namespace hsm
