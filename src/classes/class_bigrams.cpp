#include "classes/class_bigrams.h"

#include <algorithm>

namespace hsm {
namespace {

uint32_t count_of(std::span<const GroupCount> counts, int64_t group) {
  for (const GroupCount& entry : counts) {
    if (entry.group == group) return entry.count;
  }
  return 0;
}

}  // namespace

ClassBigrams::ClassBigrams(int64_t clusters, int64_t groups)
    : clusters_(static_cast<size_t>(clusters)),
      groups_(static_cast<size_t>(groups)),
      into_(clusters_ * groups_),
      from_(clusters_ * groups_),
      totals_(clusters_) {}

void ClassBigrams::add_pairs(int64_t from, int64_t to, uint32_t count) {
  const auto f = static_cast<size_t>(from);
  const auto t = static_cast<size_t>(to);
  if (t < clusters_) into_[f * clusters_ + t] += count;
  if (f < clusters_) from_[t * clusters_ + f] += count;
  if (f >= clusters_ && t >= clusters_) fixed_ += of_pair_(count);
}

void ClassBigrams::add_tokens(int64_t group, uint32_t count) {
  const auto g = static_cast<size_t>(group);
  if (g < clusters_) {
    totals_[g] += count;
  } else {
    fixed_ -= 2 * of_total_(count);
  }
}

void ClassBigrams::change(int64_t cluster, const WordContext& word, int sign) {
  const auto c = static_cast<size_t>(cluster);
  // Pairs of clusters stand in both tables.
  const auto count_pair = [&](std::vector<uint32_t>& table, std::vector<uint32_t>& other, int64_t group,
                              uint32_t count) {
    const auto g = static_cast<size_t>(group);
    const uint32_t added = sign > 0 ? count : 0 - count;
    table[g * clusters_ + c] += added;
    if (g < clusters_) other[c * clusters_ + g] += added;
  };
  for (const GroupCount& entry : word.before) count_pair(into_, from_, entry.group, entry.count);
  for (const GroupCount& entry : word.after) count_pair(from_, into_, entry.group, entry.count);
  count_pair(into_, from_, cluster, word.self);
  totals_[c] += sign > 0 ? word.total : 0 - word.total;
}

double ClassBigrams::likelihood() const {
  double sum = fixed_;
  for (const uint32_t n : into_) sum += of_pair_(n);
  for (size_t i = clusters_ * clusters_; i < from_.size(); ++i) sum += of_pair_(from_[i]);
  for (const uint32_t n : totals_) sum -= 2 * of_total_(n);
  return sum;
}

// What the pairs of `from` lose with the word, its neighbours not being in the cluster that it goes to.
double ClassBigrams::leaving(const WordContext& word, int64_t from, Sides at_from) const {
  double sum = 0;
  for (const GroupCount& entry : word.before) {
    if (entry.group != from) sum += fall(pairs(entry.group, from), entry.count);
  }
  for (const GroupCount& entry : word.after) {
    if (entry.group != from) sum += fall(pairs(from, entry.group), entry.count);
  }
  sum += fall(pairs(from, from), at_from.before + at_from.after + word.self);
  return sum + 2 * of_total_.rise(total(from) - word.total, word.total);
}

// What the pairs of `to` gain with the word. `rises` counts each neighbour's group for itself; for `to`
// itself, they come together in one pair.
double ClassBigrams::joined(const WordContext& word, int64_t to, Sides at_to, double rises) const {
  const uint32_t inner = pairs(to, to);
  rises -= of_pair_.rise(inner, at_to.before) + of_pair_.rise(inner, at_to.after);
  rises += of_pair_.rise(inner, at_to.before + at_to.after + word.self);
  return rises - 2 * of_total_.rise(total(to), word.total);
}

// Corrects the sum of leaving() and joined() for pairs of `from` and `to`, which lose and gain at once.
double ClassBigrams::moved(int64_t from, Sides at_from, int64_t to, Sides at_to) const {
  const uint32_t forth = pairs(from, to);
  const uint32_t back = pairs(to, from);
  const double apart = of_pair_.rise(forth, at_from.before) + fall(forth, at_to.after) +
                       of_pair_.rise(back, at_from.after) + fall(back, at_to.before);
  const double together = of_pair_(forth - at_to.after + at_from.before) - of_pair_(forth) +
                          of_pair_(back - at_to.before + at_from.after) - of_pair_(back);
  return together - apart;
}

void ClassBigrams::gains(const WordContext& word, int64_t from, Scratch& scratch,
                         std::span<double> gain) const {
  std::fill(gain.begin(), gain.end(), 0);
  const auto add_side = [&](std::span<const GroupCount> side, const std::vector<uint32_t>& table,
                            std::vector<uint32_t>& by_cluster) {
    for (const GroupCount& entry : side) {
      const auto g = static_cast<size_t>(entry.group);
      of_pair_.add_rises(table.data() + g * clusters_, entry.count, gain.data(), clusters_);
      if (g < clusters_) by_cluster[g] = entry.count;
    }
  };
  add_side(word.before, into_, scratch.before);
  add_side(word.after, from_, scratch.after);

  const bool leaves = from != kNowhere;
  const auto at = [&](int64_t c) {
    return Sides{scratch.before[static_cast<size_t>(c)], scratch.after[static_cast<size_t>(c)]};
  };
  const Sides at_from = leaves ? at(from) : Sides{};
  const double left = leaves ? leaving(word, from, at_from) : 0;
  for (int64_t to = 0; to < clusters(); ++to) {
    double& sum = gain[static_cast<size_t>(to)];
    sum = to == from ? 0 : left + joined(word, to, at(to), sum);
    if (leaves && to != from) sum += moved(from, at_from, to, at(to));
  }

  const auto clear = [&](std::span<const GroupCount> side, std::vector<uint32_t>& by_cluster) {
    for (const GroupCount& entry : side) {
      if (static_cast<size_t>(entry.group) < clusters_) by_cluster[static_cast<size_t>(entry.group)] = 0;
    }
  };
  clear(word.before, scratch.before);
  clear(word.after, scratch.after);
}

double ClassBigrams::gain(const WordContext& word, int64_t from, int64_t to) const {
  if (from == to) return 0;
  double rises = 0;
  for (const GroupCount& entry : word.before) rises += of_pair_.rise(pairs(entry.group, to), entry.count);
  for (const GroupCount& entry : word.after) rises += of_pair_.rise(pairs(to, entry.group), entry.count);
  const Sides at_to{count_of(word.before, to), count_of(word.after, to)};
  const double sum = joined(word, to, at_to, rises);
  if (from == kNowhere) return sum;
  const Sides at_from{count_of(word.before, from), count_of(word.after, from)};
  return sum + leaving(word, from, at_from) + moved(from, at_from, to, at_to);
}

}  // namespace hsm
