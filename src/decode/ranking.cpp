#include "decode/ranking.h"

#include <algorithm>
#include <cmath>

namespace hsm {

double LengthPenalty::score(double log_prob, int64_t length) const {
  if (alpha_ == 0) return log_prob;
  return log_prob / std::pow((5.0 + static_cast<double>(length)) / 6.0, alpha_);
}

void FinishedList::add(const FinishedHypothesis& hypothesis) {
  const auto taken = entries_.first(count_);
  const auto place = std::upper_bound(
      taken.begin(), taken.end(), hypothesis,
      [](const FinishedHypothesis& a, const FinishedHypothesis& b) { return a.score > b.score; });
  const auto index = static_cast<size_t>(place - taken.begin());
  if (index == entries_.size()) return;
  if (count_ < entries_.size()) ++count_;
  std::copy_backward(entries_.begin() + static_cast<int64_t>(index),
                     entries_.begin() + static_cast<int64_t>(count_) - 1,
                     entries_.begin() + static_cast<int64_t>(count_));
  entries_[index] = hypothesis;
}

bool FinishedList::closed_to(double score) const {
  return count_ == entries_.size() && score <= entries_.back().score;
}

}  // namespace hsm
