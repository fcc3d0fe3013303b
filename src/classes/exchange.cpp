#include "classes/exchange.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "base/error.h"
#include "classes/bigrams.h"
#include "classes/class_bigrams.h"
#include "classes/class_likelihood.h"
#include "classes/cluster_sizes.h"
#include "classes/context_reader.h"
#include "classes/frequency.h"
#include "classes/n_log_n.h"
#include "classes/rare_words.h"
#include "classes/word_parts.h"

namespace hsm {
namespace {

// Words that are looked at together, before any of them moves: few at first, as frequent words change much.
constexpr int64_t kSmallestBatch = 8;
constexpr int64_t kLargestBatch = 256;
constexpr int64_t kBatchGrowth = 16;
// A round that gains less than this of the log-likelihood of a token is the last.
constexpr double kLeastGain = 2e-4;
// A move must gain more than rounding could.
constexpr double kLeastMove = 1e-6;

/// The words that move, their counts, and the clusters where they are.
class Exchange {
 public:
  Exchange(const WordParts& parts, const NeighbourLists& successors, ClassBigrams& bigrams,
           ClusterSizes& sizes, ThreadPool& pool)
      : parts_(parts),
        successors_(successors),
        predecessors_(successors.transposed(parts.moving)),
        tokens_(count_tokens(successors)),
        bigrams_(bigrams),
        sizes_(sizes),
        pool_(pool) {
    for (int worker = 0; worker < pool.threads(); ++worker) workers_.emplace_back(bigrams);
  }

  /// Begins with the words in clusters that end with these items.
  void start(std::span<const int64_t> ends) {
    cluster_of_.resize(static_cast<size_t>(parts_.moving));
    size_t item = 0;
    for (size_t cluster = 0; cluster < ends.size(); ++cluster) {
      for (; item < static_cast<size_t>(ends[cluster]); ++item) {
        cluster_of_[item] = static_cast<int32_t>(cluster);
        sizes_.change(cluster_of_[item], 1, tokens_[item]);
      }
    }
    count_pairs();
    fixed_part_ = fixed_part();
  }

  struct Round {
    int64_t moves = 0;
    double gained = 0;  // of likelihood, less fees
  };

  /// Lets each word move once, among neighbours that stay. All that moved go back if they lost together.
  /// progress(part) may throw.
  Round run_round(const std::function<void(double)>& progress) {
    const double before = worth();
    Round round;
    std::vector<int32_t> best;
    for (int64_t first = 0; first < parts_.moving;) {
      progress(static_cast<double>(first) / static_cast<double>(parts_.moving));
      const int64_t batch =
          std::min(parts_.moving - first, std::clamp(first / kBatchGrowth, kSmallestBatch, kLargestBatch));
      best.resize(static_cast<size_t>(batch));
      pool_.run(batch, [&](int64_t i, int worker) {
        best[static_cast<size_t>(i)] =
            best_cluster(static_cast<int32_t>(first + i), workers_[static_cast<size_t>(worker)]);
      });
      for (int64_t i = 0; i < batch; ++i) {
        if (move(static_cast<int32_t>(first + i), best[static_cast<size_t>(i)])) ++round.moves;
      }
      first += batch;
    }
    const std::vector<int32_t> start = neighbour_group_;
    count_pairs();
    round.gained = worth() - before;
    if (round.gained >= 0) return round;
    for (int32_t item = 0; item < parts_.moving; ++item) {
      relocate(item, start[static_cast<size_t>(item)], tokens_[static_cast<size_t>(item)]);
    }
    count_pairs();
    return {};
  }

  /// By item.
  [[nodiscard]] std::span<const int32_t> cluster_of() const { return cluster_of_; }
  /// Of the class bigram model, but for the part of the words.
  [[nodiscard]] double likelihood() const { return bigrams_.likelihood() + fixed_part_; }

 private:
  [[nodiscard]] double worth() const { return bigrams_.likelihood() - sizes_.fees(); }

  static std::vector<uint32_t> count_tokens(const NeighbourLists& successors) {
    std::vector<uint32_t> tokens(static_cast<size_t>(successors.items()));
    for (size_t item = 0; item < tokens.size(); ++item) {
      for (const Neighbour& next : successors.of(static_cast<int64_t>(item))) tokens[item] += next.count;
    }
    return tokens;
  }

  // What fixed groups among themselves add to the likelihood.
  [[nodiscard]] double fixed_part() const {
    const NLogN of_pair(kPairDiscount);
    const NLogN of_total;
    double sum = 0;
    for (auto item = static_cast<int32_t>(parts_.moving); item < parts_.items(); ++item) {
      for (const Neighbour& next : successors_.of(item)) {
        if (next.item >= parts_.moving) sum += of_pair(next.count);
      }
      sum -= 2 * of_total(tokens_[static_cast<size_t>(item)]);
    }
    return sum;
  }

  // As neighbours, words stand where they stood when the round began.
  void count_pairs() {
    neighbour_group_ = cluster_of_;
    bigrams_.clear();
    MoveScratch& worker = workers_.front();
    for (int32_t item = 0; item < parts_.moving; ++item) {
      read_context(item, worker);
      bigrams_.add(cluster_of_[static_cast<size_t>(item)], worker.context);
    }
  }

  void read_context(int32_t item, MoveScratch& worker) const {
    WordContext& context = worker.context;
    const auto group = [this](int32_t other) {
      return other < parts_.moving ? neighbour_group_[static_cast<size_t>(other)]
                                   : static_cast<int32_t>(parts_.clusters + other - parts_.moving);
    };
    worker.reader.read(predecessors_.of(item), group, context.before);
    worker.reader.read(successors_.of(item), group, context.after);
    context.total = tokens_[static_cast<size_t>(item)];
  }

  // The cluster that gains most, or the word's own.
  int32_t best_cluster(int32_t item, MoveScratch& worker) const {
    const int32_t from = cluster_of_[static_cast<size_t>(item)];
    if (!sizes_.can_lose(from)) return from;
    read_context(item, worker);
    bigrams_.gains(worker.context, from, worker.gain);
    sizes_.subtract_fees(worker.context.total, worker.gain);
    double most = kLeastMove - sizes_.refund(from, worker.context.total);
    int32_t best = from;
    for (int32_t c = 0; c < parts_.clusters; ++c) {
      const double gain = worker.gain[static_cast<size_t>(c)];
      if (gain > most && c != from && sizes_.has_room(c)) {
        most = gain;
        best = c;
      }
    }
    return best;
  }

  // Moves the word unless others, which have moved since, made it a loss.
  bool move(int32_t item, int32_t to) {
    const int32_t from = cluster_of_[static_cast<size_t>(item)];
    if (to == from || !sizes_.can_lose(from) || !sizes_.has_room(to)) return false;
    MoveScratch& worker = workers_.front();
    read_context(item, worker);
    const WordContext& context = worker.context;
    const double worth = bigrams_.gain(context, from, to) + sizes_.refund(from, context.total) -
                         sizes_.entry_fee(to, context.total);
    if (worth <= kLeastMove) return false;
    bigrams_.remove(from, context);
    bigrams_.add(to, context);
    relocate(item, to, context.total);
    return true;
  }

  void relocate(int32_t item, int32_t to, int64_t tokens) {
    int32_t& cluster = cluster_of_[static_cast<size_t>(item)];
    sizes_.change(cluster, -1, -tokens);
    sizes_.change(to, 1, tokens);
    cluster = to;
  }

  const WordParts& parts_;
  const NeighbourLists& successors_;
  NeighbourLists predecessors_;
  std::vector<uint32_t> tokens_;  // by item
  ClassBigrams& bigrams_;
  ClusterSizes& sizes_;
  ThreadPool& pool_;
  std::vector<int32_t> cluster_of_;
  std::vector<int32_t> neighbour_group_;  // of the items that move
  double fixed_part_ = 0;
  std::vector<MoveScratch> workers_;
};

void check_sizes(const RankedWords& words, int64_t first, const Vocabulary& vocabulary,
                 const ExchangeOptions& options) {
  const int64_t clustered = words.size() - first;
  check_class_sizes(vocabulary, options.shortlist, options.clusters, clustered);
  if (options.clusters > kMostExchangeClusters) {
    throw UsageError("classes.clusters: " + std::to_string(options.clusters) + " given, expected at most " +
                     std::to_string(kMostExchangeClusters) +
                     " with classes.method \"exchange\", which counts pairs of clusters");
  }
  const int64_t fewest = (clustered + options.clusters - 1) / options.clusters;
  if (options.limits.largest > 0 && options.limits.largest < fewest) {
    throw UsageError("classes.largest: " + std::to_string(options.limits.largest) +
                     " given, expected at least " + std::to_string(fewest) + " for " +
                     std::to_string(clustered) + " words in " + std::to_string(options.clusters) +
                     (options.clusters == 1 ? " cluster" : " clusters"));
  }
  if (options.clusters > 1 && options.clusters < clustered && options.limits.largest > 0 &&
      4 * options.limits.largest * options.clusters < 5 * clustered) {
    spdlog::warn(
        "classes.largest: {} leaves little room for {} words in {} clusters, so most stay where their "
        "frequency puts them",
        options.limits.largest, clustered, options.clusters);
  }
}

// Where each exchanged cluster ends, to begin with: bins of equal sums of square roots of counts.
std::vector<int64_t> starting_bins(const RankedWords& words, int64_t first, const WordParts& parts,
                                   const ExchangeOptions& options) {
  const int64_t most = options.limits.largest > 0 ? options.limits.largest : parts.moving;
  std::vector<int64_t> ends = words.cut(first, first + parts.moving, parts.clusters, most);
  for (int64_t& end : ends) end -= first;
  return ends;
}

// Fills in the groups of words on the shortlist; rare words have none yet.
void add_fixed_groups(const WordParts& parts, std::span<int32_t> group_of) {
  for (size_t id = 0; id < group_of.size(); ++id) {
    if (parts.item_of[id] >= parts.moving) {
      group_of[id] = static_cast<int32_t>(parts.clusters + parts.item_of[id] - parts.moving);
    }
  }
  for (const int32_t id : parts.rare_ids) group_of[static_cast<size_t>(id)] = -1;
}

// Clusters in order of their most frequent word; fixed groups are the shortlist.
WordClasses number_clusters(std::vector<int32_t> group_of, int64_t clusters) {
  std::vector<int32_t> number(static_cast<size_t>(clusters), -1);
  int32_t next = 0;
  for (int32_t& group : group_of) {
    if (group < 0 || group >= clusters) {
      group = kShortlist;
      continue;
    }
    int32_t& given = number[static_cast<size_t>(group)];
    if (given < 0) given = next++;
    group = given;
  }
  return {std::move(group_of), next};
}

}  // namespace

WordClasses exchange_classes(const TokenFile& tokens, const Vocabulary& vocabulary,
                             const ExchangeOptions& options, ThreadPool& pool, const ExchangeReport& report) {
  const RankedWords words(vocabulary, BinWeight::square_root);
  const int64_t first = words.first_binned(options.shortlist);
  check_sizes(words, first, vocabulary, options);
  if (options.clusters == 1) {
    return frequency_classes(vocabulary, BinWeight::square_root, options.shortlist, 1);
  }
  const WordParts parts = part_words(vocabulary, words, first, options.clusters, options.exchanged);
  const SampledTokens sample(tokens, options.most_tokens);
  ClassBigrams bigrams(parts.clusters, parts.groups());
  ClusterSizes sizes(parts.clusters, options.limits, sample.size());
  std::vector<int32_t> group_of(static_cast<size_t>(vocabulary.size()), -1);
  {
    const NeighbourLists successors =
        count_successors(sample, parts.item_of, parts.items(), pool, options.pass_bytes, [&](double part) {
          report({ExchangeStage::counting, 0, part});
        });
    Exchange exchange(parts, successors, bigrams, sizes, pool);
    exchange.start(starting_bins(words, first, parts, options));
    const auto all = static_cast<double>(std::max<int64_t>(1, sample.size()));
    const double words_part = words_likelihood(vocabulary, sample.size());
    for (int64_t number = 1; number <= options.rounds; ++number) {
      const Exchange::Round round = exchange.run_round([&](double part) {
        report({ExchangeStage::exchanging, number, part});
      });
      const double likelihood = exchange.likelihood() + words_part;
      report({ExchangeStage::exchanging, number, 1, true, likelihood / all, round.moves});
      if (round.gained < kLeastGain * all) break;
    }
    for (size_t item = 0; item < parts.moving_ids.size(); ++item) {
      group_of[static_cast<size_t>(parts.moving_ids[item])] = exchange.cluster_of()[item];
    }
  }
  if (!parts.rare_ids.empty()) {
    add_fixed_groups(parts, group_of);
    place_rare_words(tokens, vocabulary, parts.rare_ids, group_of, bigrams, sizes, sample.size(), pool,
                     options.pass_bytes, [&](double part) {
                       report({ExchangeStage::placing, 0, part});
                     });
  }
  return number_clusters(std::move(group_of), options.clusters);
}

}  // namespace hsm
