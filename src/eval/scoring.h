#pragma once
#include <cstdint>

#include "base/thread_pool.h"
#include "model/inference_model.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Sums over a text, natural logarithm. `words` counts every prediction, `</s>` too.
struct CorpusScore {
  int64_t sentences = 0;
  int64_t words = 0;
  int64_t oov = 0;  ///< words not in the vocabulary, or a literal <unk>: predicted as <unk>
  double log_prob = 0;
  double log_prob_oov = 0;  ///< the part of log_prob that stands at such positions

  [[nodiscard]] double perplexity() const;
  [[nodiscard]] double perplexity_without_oov() const;
};

enum class Context { stream, sentence };

/// Perplexity of a whole token file in bounded memory: `stream` carries the state from zero through all of
/// it, `sentence` starts each line from zero. The same bits for any number of threads.
CorpusScore score_corpus(const InferenceModel& model, const Vocabulary& vocabulary, const TokenFile& tokens,
                         Context context, ThreadPool& pool);

}  // namespace hsm
