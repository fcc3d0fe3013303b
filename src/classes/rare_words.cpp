#include "classes/rare_words.h"

#include <algorithm>
#include <limits>
#include <vector>

#include "classes/bigrams.h"
#include "classes/context_reader.h"

namespace hsm {
namespace {

constexpr int64_t kMostSeen = 64;                   // tokens of a word whose neighbours are looked at
constexpr int64_t kMostCounted = int64_t{1} << 31;  // and of all words, so that counts fit into 32 bits
constexpr int64_t kBatch = 256;                     // words that are looked at together

/// The neighbours of some words.
struct Surroundings {
  std::vector<int64_t> first;  ///< of each word in `before` and `after`; an entry more
  std::vector<int64_t> end;
  std::vector<Neighbour> before;
  std::vector<Neighbour> after;

  [[nodiscard]] std::span<const Neighbour> of(const std::vector<Neighbour>& side, size_t word) const {
    return std::span(side).subspan(static_cast<size_t>(first[word]),
                                   static_cast<size_t>(end[word] - first[word]));
  }
};

// place[id] is 1 + the number of a word among those that are looked at, else 0. progress(part) as below.
void collect(const TokenFile& tokens, std::span<const int32_t> place, Surroundings& found,
             const std::function<void(double)>& progress) {
  int32_t before = -1;
  int64_t open = -1;  // where the next token is to be noted
  int64_t read = 0;
  const SampledTokens all(tokens, std::max<int64_t>(1, tokens.size()));
  all.for_each_window([&](std::span<const int32_t> window) {
    progress(static_cast<double>(read) / static_cast<double>(tokens.size()));
    read += static_cast<int64_t>(window.size());
    for (const int32_t token : window) {
      if (open >= 0) found.after[static_cast<size_t>(open)] = {token, 1};
      open = -1;
      if (const int32_t at = place[static_cast<size_t>(token)]; at > 0) {
        const auto word = static_cast<size_t>(at - 1);
        if (found.end[word] < found.first[word + 1]) {
          open = found.end[word]++;
          if (before >= 0) found.before[static_cast<size_t>(open)] = {before, 1};
        }
      }
      before = token;
    }
  });
}

class Placer {
 public:
  Placer(const Vocabulary& vocabulary, std::span<int32_t> group_of, ClassBigrams& bigrams,
         ClusterSizes& sizes, double counted_share, ThreadPool& pool)
      : vocabulary_(vocabulary),
        group_of_(group_of),
        bigrams_(bigrams),
        sizes_(sizes),
        counted_share_(counted_share),
        pool_(pool) {
    for (int worker = 0; worker < pool.threads(); ++worker) workers_.emplace_back(bigrams);
  }

  /// Words [first, last) of those whose neighbours were collected; word i has id ids[i].
  void place(std::span<const int32_t> ids, const Surroundings& found, int64_t first, int64_t last) {
    std::vector<int32_t> best(static_cast<size_t>(last - first));
    pool_.run(last - first, [&](int64_t i, int worker) {
      best[static_cast<size_t>(i)] =
          best_cluster(ids, found, first + i, workers_[static_cast<size_t>(worker)]);
    });
    for (int64_t word = first; word < last; ++word) {
      int32_t cluster = best[static_cast<size_t>(word - first)];
      MoveScratch& worker = workers_.front();
      read_context(found, word, worker);
      // Words without neighbours all like the same cluster, the smallest.
      const bool lonely = worker.context.before.empty() && worker.context.after.empty();
      if (lonely || !sizes_.has_room(cluster)) {
        cluster = best_cluster(ids, found, word, worker);
      }
      const int32_t id = ids[static_cast<size_t>(word)];
      bigrams_.add(cluster, worker.context);
      sizes_.change(cluster, 1, counted(id));
      group_of_[static_cast<size_t>(id)] = cluster;
    }
  }

 private:
  [[nodiscard]] int64_t counted(int32_t id) const {
    return static_cast<int64_t>(static_cast<double>(vocabulary_.count(id)) * counted_share_);
  }

  void read_context(const Surroundings& found, int64_t word, MoveScratch& worker) const {
    const auto w = static_cast<size_t>(word);
    const auto group = [this](int32_t id) { return id < 0 ? -1 : group_of_[static_cast<size_t>(id)]; };
    WordContext& context = worker.context;
    worker.reader.read(found.of(found.before, w), group, context.before);
    worker.reader.read(found.of(found.after, w), group, context.after);
    context.total = static_cast<uint32_t>(found.end[w] - found.first[w]);
  }

  // Of clusters with room, that which gains most, the smaller of two that gain the same.
  int32_t best_cluster(std::span<const int32_t> ids, const Surroundings& found, int64_t word,
                       MoveScratch& worker) const {
    read_context(found, word, worker);
    bigrams_.gains(worker.context, ClassBigrams::kNowhere, worker.gain);
    sizes_.subtract_fees(counted(ids[static_cast<size_t>(word)]), worker.gain);
    int32_t best = -1;
    for (int32_t c = 0; c < static_cast<int32_t>(bigrams_.clusters()); ++c) {
      if (!sizes_.has_room(c)) continue;
      const double gain = worker.gain[static_cast<size_t>(c)];
      const double most =
          best < 0 ? -std::numeric_limits<double>::infinity() : worker.gain[static_cast<size_t>(best)];
      if (gain > most || (gain == most && sizes_.words(c) < sizes_.words(best))) best = c;
    }
    return best;
  }

  const Vocabulary& vocabulary_;
  std::span<int32_t> group_of_;
  ClassBigrams& bigrams_;
  ClusterSizes& sizes_;
  double counted_share_;
  ThreadPool& pool_;
  std::vector<MoveScratch> workers_;
};

}  // namespace

void place_rare_words(const TokenFile& tokens, const Vocabulary& vocabulary, std::span<const int32_t> rare,
                      std::span<int32_t> group_of, ClassBigrams& bigrams, ClusterSizes& sizes,
                      int64_t counted, ThreadPool& pool, int64_t pass_bytes,
                      const std::function<void(double)>& progress) {
  const auto words = static_cast<int64_t>(rare.size());
  const int64_t most_seen = std::clamp<int64_t>(kMostCounted / std::max<int64_t>(1, words), 1, kMostSeen);
  const int64_t pass_tokens = pass_bytes / static_cast<int64_t>(2 * sizeof(Neighbour));
  Placer placer(vocabulary, group_of, bigrams, sizes,
                static_cast<double>(counted) / static_cast<double>(std::max<int64_t>(1, tokens.size())),
                pool);
  std::vector<int32_t> place(static_cast<size_t>(vocabulary.size()));
  for (int64_t begin = 0; begin < words;) {
    Surroundings found;
    found.first.push_back(0);
    int64_t end = begin;
    // Whole batches, so that the result doesn't depend on the passes.
    for (; end < words && (found.first.back() < pass_tokens || end % kBatch != 0); ++end) {
      const int32_t id = rare[static_cast<size_t>(end)];
      found.first.push_back(found.first.back() + std::min(vocabulary.count(id), most_seen));
      place[static_cast<size_t>(id)] = static_cast<int32_t>(end - begin + 1);
    }
    found.end.assign(found.first.begin(), found.first.end() - 1);
    found.before.assign(static_cast<size_t>(found.first.back()), {-1, 1});
    found.after = found.before;
    // Of the words of a pass, half is done when their neighbours are known.
    const auto of_pass = [&](double part) {
      const double placed = static_cast<double>(begin) + part * static_cast<double>(end - begin);
      progress(placed / static_cast<double>(words));
    };
    collect(tokens, place, found, [&](double part) { of_pass(part / 2); });
    const auto ids = rare.subspan(static_cast<size_t>(begin), static_cast<size_t>(end - begin));
    for (int64_t first = 0; first < end - begin; first += kBatch) {
      of_pass(0.5 + 0.5 * static_cast<double>(first) / static_cast<double>(end - begin));
      placer.place(ids, found, first, std::min(end - begin, first + kBatch));
    }
    for (const int32_t id : ids) place[static_cast<size_t>(id)] = 0;
    begin = end;
  }
}

}  // namespace hsm
