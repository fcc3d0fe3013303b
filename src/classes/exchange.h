#pragma once
#include <cstdint>
#include <functional>

#include "base/thread_pool.h"
#include "classes/bigrams.h"
#include "classes/cluster_sizes.h"
#include "classes/word_classes.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

struct ExchangeOptions {
  int64_t shortlist = 0;  ///< words with an id below this stand at the root, and the reserved symbols
  int64_t clusters = 1;
  int64_t rounds = 20;  ///< at most so many, fewer when little changes
  ClusterLimits limits{};
  /// So many of the most frequent words in clusters are exchanged; the others are placed once, at the end, by
  /// their neighbours.
  int64_t exchanged = int64_t{1} << 17;
  int64_t most_tokens = SampledTokens::kMostTokens;  ///< of a longer text a sample of so many is counted
  /// For what is collected in one pass over the text, about so much; the result doesn't depend on it.
  int64_t pass_bytes = kPassBytes;
};

/// More would have tables (8 bytes for each pair of a cluster and a group, of which there may be 4,097
/// besides the clusters) of more than 4 GB.
inline constexpr int64_t kMostExchangeClusters = 20'000;

enum class ExchangeStage { counting, exchanging, placing };

/// How far clustering is.
struct ExchangeProgress {
  ExchangeStage stage = ExchangeStage::counting;
  int64_t round = 0;          ///< of exchanging, from 1
  double part = 0;            ///< of what the stage or the round has to do
  bool round_done = false;    ///< then the next two are known
  double log_likelihood = 0;  ///< of a token under the class bigram model, natural logarithm
  int64_t moves = 0;          ///< words that changed their cluster in this round
};

/// May throw to end it.
using ExchangeReport = std::function<void(const ExchangeProgress&)>;

/// Classes by the exchange algorithm (Martin, Liermann and Ney 1998): from frequency bins, each word in turn
/// goes to the cluster where the likelihood of a class bigram model of the text gains most, over several
/// rounds, in each of which its neighbours stay where they were. Words of the shortlist are classes of their
/// own in that model. The result depends on text and options alone, not on threads or machine. One
/// cluster is all words, and the text isn't read then. Memory: 8 bytes for each pair of words that stand side
/// by side in at most `most_tokens` tokens, on either side; 8 bytes for each pair of a cluster and a group
/// (the clusters, and at most 4,097 for the shortlist); and `pass_bytes`.
///
/// UsageError when sizes can't be met.
WordClasses exchange_classes(const TokenFile& tokens, const Vocabulary& vocabulary,
                             const ExchangeOptions& options, ThreadPool& pool, const ExchangeReport& report);

}  // namespace hsm
