#pragma once
#include <cstdint>
#include <limits>

#include "base/thread_pool.h"
#include "eval/text_scorer.h"
#include "model/inference_model.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

/// Sums over a text, natural logarithm. `words` counts every prediction, `</s>` too.
///
/// Words are summed sentence by sentence in the order of the text, then sentences in order, so that sums
/// printed by sentence add up to the corpus's to the bit.
struct CorpusScore {
  int64_t sentences = 0;
  int64_t words = 0;
  int64_t oov = 0;        ///< words not in the vocabulary, or a literal <unk>: predicted as <unk>
  int64_t malformed = 0;  ///< lines that were left out for it
  double log_prob = 0;
  double log_prob_root = 0;  ///< the part of log_prob that is due to the head's root
  double log_prob_oov = 0;   ///< the part of log_prob that stands at such positions

  /// NaN when there is no prediction to average over; never infinite.
  [[nodiscard]] double perplexity() const;
  /// Of the predictions that aren't at OOV positions.
  [[nodiscard]] double perplexity_without_oov() const;
  /// Per word proper: `</s>` stays in the sum of logarithms but is not counted (SRILM's ppl1). NaN when all
  /// sentences are empty.
  [[nodiscard]] double perplexity_per_word() const;

  CorpusScore& operator+=(const CorpusScore& other);
};

/// Adds up one sentence after another.
class ScoreSum {
 public:
  ScoreSum(int32_t end_of_sentence, int32_t unknown) : end_of_sentence_(end_of_sentence), unknown_(unknown) {}

  /// The next word of the text. True when it was `</s>`: sentence() is complete until the next call.
  bool add(int32_t word, const TokenScore& score);
  [[nodiscard]] const CorpusScore& sentence() const noexcept { return sentence_; }
  /// Of all complete sentences.
  [[nodiscard]] const CorpusScore& corpus() const noexcept { return corpus_; }

 private:
  int32_t end_of_sentence_;
  int32_t unknown_;
  CorpusScore sentence_;
  CorpusScore corpus_;
};

enum class Context { stream, sentence };

/// Perplexity of a whole token file in bounded memory: `stream` carries the state from zero through all of
/// it, `sentence` starts each line from zero. With `most`, of its first words alone.
CorpusScore score_corpus(TextScorer& scorer, const Vocabulary& vocabulary, const TokenFile& tokens,
                         Context context, int64_t most = std::numeric_limits<int64_t>::max());
/// The same on the CPU: the same bits for any number of threads.
CorpusScore score_corpus(const InferenceModel& model, const Vocabulary& vocabulary, const TokenFile& tokens,
                         Context context, ThreadPool& pool);

}  // namespace hsm
