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

/// The neighbours of a word by group, each group at most once.
struct WordContext {
  std::vector<GroupCount> before;
  std::vector<GroupCount> after;
  uint32_t total = 0;  ///< how often the word is there
};

/// What counts of pairs are less in logarithms of probabilities. A word that joins a cluster brings its own
/// pairs along, and pairs that were seen once speak for little in text to come; as if they had been left out
/// when they were predicted, they count 0.1 for 1 (leaving one out: Kneser and Ney, "Improved clustering
/// techniques for class-based statistical language modelling", Eurospeech 1993).
inline constexpr double kPairDiscount = 0.9;

/// How often words of each cluster stand beside each group: the clusters, and fixed groups. A word that moves
/// takes its pairs with it, but to its neighbours it still counts as before: moves change
///   L = Σ N(g, c) ln(N(g, c) − d) + Σ N(c, g) ln(N(c, g) − d) − 2 Σ N(c) ln N(c),    d = kPairDiscount
/// over clusters c and groups g, in which the neighbours' groups stand still. So words of a round can be
/// looked at side by side, and what it leads to is better than where each move is followed at once. (Exchange
/// as in Martin, Liermann and Ney, "Algorithms for bigram and trigram word clustering", Speech Communication
/// 24, 1998.) All sums of counts must fit into 32 bits.
class ClassBigrams {
 public:
  ClassBigrams(int64_t clusters, int64_t groups);

  [[nodiscard]] int64_t clusters() const noexcept { return static_cast<int64_t>(clusters_); }
  [[nodiscard]] int64_t groups() const noexcept { return static_cast<int64_t>(groups_); }

  void clear();
  void add(int64_t cluster, const WordContext& word) { change(cluster, word, 1); }
  void remove(int64_t cluster, const WordContext& word) { change(cluster, word, -1); }

  /// Σ N(g, g') ln(N(g, g') − d) − 2 Σ N(c) ln N(c) over all pairs with a cluster, when the neighbours'
  /// groups are those of today.
  [[nodiscard]] double likelihood() const;

  static constexpr int64_t kNowhere = -1;
  /// gain[c]: what L gains when the word leaves cluster `from` for cluster c; 0 at `from`. From kNowhere:
  /// when a word that isn't counted yet joins c. Takes O(clusters · groups beside the word).
  void gains(const WordContext& word, int64_t from, std::span<double> gain) const;
  /// gain[to] alone. Takes O(groups beside the word).
  [[nodiscard]] double gain(const WordContext& word, int64_t from, int64_t to) const;

 private:
  // Where before_ and after_ count the pair.
  [[nodiscard]] size_t place(int64_t group, int64_t cluster) const {
    return static_cast<size_t>(group) * clusters_ + static_cast<size_t>(cluster);
  }
  void change(int64_t cluster, const WordContext& word, int sign);
  [[nodiscard]] double joining(const WordContext& word, int64_t to) const;
  [[nodiscard]] double leaving(const WordContext& word, int64_t from) const;

  NLogN of_pair_{kPairDiscount};
  NLogN of_total_;
  size_t clusters_;
  size_t groups_;
  std::vector<uint32_t> before_;  // [group][cluster]: the group stands before a word of the cluster
  std::vector<uint32_t> after_;   // and after it
  std::vector<uint32_t> totals_;  // tokens of a cluster
};

}  // namespace hsm
