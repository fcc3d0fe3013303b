#include "classes/class_bigrams.h"

#include <algorithm>

namespace hsm {

ClassBigrams::ClassBigrams(int64_t clusters, int64_t groups)
    : clusters_(static_cast<size_t>(clusters)),
      groups_(static_cast<size_t>(groups)),
      before_(clusters_ * groups_),
      after_(clusters_ * groups_),
      totals_(clusters_) {}

void ClassBigrams::clear() {
  for (auto* counts : {&before_, &after_, &totals_}) std::fill(counts->begin(), counts->end(), 0);
}

void ClassBigrams::change(int64_t cluster, const WordContext& word, int sign) {
  const auto signed_count = [sign](uint32_t count) { return sign > 0 ? count : 0 - count; };
  for (const GroupCount& entry : word.before) {
    before_[place(entry.group, cluster)] += signed_count(entry.count);
  }
  for (const GroupCount& entry : word.after) {
    after_[place(entry.group, cluster)] += signed_count(entry.count);
  }
  totals_[static_cast<size_t>(cluster)] += signed_count(word.total);
}

double ClassBigrams::likelihood() const {
  // Pairs of two clusters stand in both tables.
  double sum = 0;
  for (const uint32_t n : before_) sum += of_pair_(n);
  for (size_t i = clusters_ * clusters_; i < after_.size(); ++i) sum += of_pair_(after_[i]);
  for (const uint32_t n : totals_) sum -= 2 * of_total_(n);
  return sum;
}

double ClassBigrams::joining(const WordContext& word, int64_t to) const {
  double sum = 0;
  for (const GroupCount& entry : word.before)
    sum += of_pair_.rise(before_[place(entry.group, to)], entry.count);
  for (const GroupCount& entry : word.after)
    sum += of_pair_.rise(after_[place(entry.group, to)], entry.count);
  return sum - 2 * of_total_.rise(totals_[static_cast<size_t>(to)], word.total);
}

double ClassBigrams::leaving(const WordContext& word, int64_t from) const {
  double sum = 0;
  for (const GroupCount& entry : word.before) {
    sum -= of_pair_.rise(before_[place(entry.group, from)] - entry.count, entry.count);
  }
  for (const GroupCount& entry : word.after) {
    sum -= of_pair_.rise(after_[place(entry.group, from)] - entry.count, entry.count);
  }
  return sum + 2 * of_total_.rise(totals_[static_cast<size_t>(from)] - word.total, word.total);
}

void ClassBigrams::gains(const WordContext& word, int64_t from, std::span<double> gain) const {
  std::fill(gain.begin(), gain.end(), 0);
  for (const GroupCount& entry : word.before) {
    of_pair_.add_rises(&before_[place(entry.group, 0)], entry.count, gain.data(), clusters_);
  }
  for (const GroupCount& entry : word.after) {
    of_pair_.add_rises(&after_[place(entry.group, 0)], entry.count, gain.data(), clusters_);
  }
  const double left = from == kNowhere ? 0 : leaving(word, from);
  for (size_t to = 0; to < clusters_; ++to) {
    gain[to] += left - 2 * of_total_.rise(totals_[to], word.total);
  }
  if (from != kNowhere) gain[static_cast<size_t>(from)] = 0;
}

double ClassBigrams::gain(const WordContext& word, int64_t from, int64_t to) const {
  if (from == to) return 0;
  return joining(word, to) + (from == kNowhere ? 0 : leaving(word, from));
}

}  // namespace hsm
