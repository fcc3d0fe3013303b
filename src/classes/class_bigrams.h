#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "classes/n_log_n.h"

namespace hsm {

/// A group of words and how often it stands beside a word.
struct GroupCount {
  int32_t group = 0;
  uint32_t count = 0;
};

/// The neighbours of a word by group, each group at most once, without the pairs of the word with itself.
struct WordContext {
  std::vector<GroupCount> before;
  std::vector<GroupCount> after;
  uint32_t self = 0;   ///< how often the word follows itself
  uint32_t total = 0;  ///< how often it is there
};

/// What counts of pairs are less in logarithms of probabilities. A word that joins a cluster brings its own
/// pairs along, and pairs that were seen once speak for little in text to come; as if they had been left out
/// when they were predicted, they count 0.1 for 1 (leaving one out: Kneser and Ney, "Improved clustering
/// techniques for class-based statistical language modelling", Eurospeech 1993).
inline constexpr double kPairDiscount = 0.9;

/// Counts of pairs of groups. Groups [0, clusters) are clusters, whose words move; those from there to
/// `groups` are fixed. Its likelihood is that of a class bigram model, up to what no move changes:
///   L = Σ N(g, g') ln(N(g, g') − kPairDiscount) − 2 Σ N(g) ln N(g)
/// (Martin, Liermann and Ney, "Algorithms for bigram and trigram word clustering", Speech Communication 24,
/// 1998; there without discount). All sums of counts must fit into 32 bits.
class ClassBigrams {
 public:
  ClassBigrams(int64_t clusters, int64_t groups);

  [[nodiscard]] int64_t clusters() const noexcept { return static_cast<int64_t>(clusters_); }
  [[nodiscard]] int64_t groups() const noexcept { return static_cast<int64_t>(groups_); }
  /// How often a token of group `from` is followed by one of group `to`; one of them at least is a cluster.
  [[nodiscard]] uint32_t pairs(int64_t from, int64_t to) const {
    const auto f = static_cast<size_t>(from);
    const auto t = static_cast<size_t>(to);
    return t < clusters_ ? into_[f * clusters_ + t] : from_[t * clusters_ + f];
  }
  [[nodiscard]] uint32_t total(int64_t cluster) const { return totals_[static_cast<size_t>(cluster)]; }

  void add(int64_t cluster, const WordContext& word) { change(cluster, word, 1); }
  void remove(int64_t cluster, const WordContext& word) { change(cluster, word, -1); }
  /// Counts pairs and tokens of groups, to begin with.
  void add_pairs(int64_t from, int64_t to, uint32_t count);
  void add_tokens(int64_t group, uint32_t count);

  /// L, summed afresh.
  [[nodiscard]] double likelihood() const;

  /// Buffers of gains(), for one thread.
  struct Scratch {
    std::vector<uint32_t> before;  // of the word by cluster; zero between calls
    std::vector<uint32_t> after;
  };
  [[nodiscard]] Scratch scratch() const {
    return {std::vector<uint32_t>(clusters_), std::vector<uint32_t>(clusters_)};
  }

  static constexpr int64_t kNowhere = -1;
  /// gain[c]: what L gains when the word leaves cluster `from` for cluster c; 0 at `from`. From kNowhere:
  /// when a word that isn't counted yet joins c. Takes O(clusters · groups beside the word).
  void gains(const WordContext& word, int64_t from, Scratch& scratch, std::span<double> gain) const;
  /// gain[to] alone. Takes O(groups beside the word).
  [[nodiscard]] double gain(const WordContext& word, int64_t from, int64_t to) const;

 private:
  struct Sides {
    uint32_t before = 0;
    uint32_t after = 0;
  };

  void change(int64_t cluster, const WordContext& word, int sign);
  [[nodiscard]] double fall(uint32_t n, uint32_t less) const { return of_pair_(n - less) - of_pair_(n); }
  [[nodiscard]] double leaving(const WordContext& word, int64_t from, Sides at_from) const;
  [[nodiscard]] double joined(const WordContext& word, int64_t to, Sides at_to, double rises) const;
  [[nodiscard]] double moved(int64_t from, Sides at_from, int64_t to, Sides at_to) const;

  NLogN of_pair_{kPairDiscount};
  NLogN of_total_;
  size_t clusters_;
  size_t groups_;
  std::vector<uint32_t> into_;    // [group][cluster]: the group, then the cluster
  std::vector<uint32_t> from_;    // [group][cluster]: the cluster, then the group
  std::vector<uint32_t> totals_;  // tokens of a cluster
  double fixed_ = 0;              // what fixed groups among themselves add to the likelihood
};

}  // namespace hsm
