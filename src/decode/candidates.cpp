#include "decode/candidates.h"

#include <algorithm>

namespace hsm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

}  // namespace

void BestCandidates::offer(const Candidate& candidate) {
  if (!(candidate.score > -kInfinity)) return;
  if (count_ < heap_.size()) {
    heap_[count_++] = candidate;
    std::push_heap(heap_.begin(), heap_.begin() + static_cast<int64_t>(count_), better);
    return;
  }
  if (!better(candidate, heap_[0])) return;
  std::pop_heap(heap_.begin(), heap_.end(), better);
  heap_.back() = candidate;
  std::push_heap(heap_.begin(), heap_.end(), better);
}

std::span<const Candidate> BestCandidates::sort() {
  const auto taken = heap_.first(count_);
  std::sort_heap(taken.begin(), taken.end(), better);
  return taken;
}

CandidateQuery query_for_row(int64_t row, std::span<Candidate> memory) {
  static constexpr double kNoScore = 0;
  CandidateQuery query;
  query.first_row = row;
  query.scores = {&kNoScore, 1};
  query.words = BestCandidates(memory.first(memory.size() - 1));
  query.ends = BestCandidates(memory.last(1));
  return query;
}

std::span<const Candidate> rank_with_end(CandidateQuery& query, std::span<Candidate> memory) {
  const auto words = static_cast<int64_t>(query.words.sort().size());
  const auto ends = query.ends.sort();
  if (ends.empty()) return memory.first(static_cast<size_t>(words));
  const auto behind = memory.begin() + words;
  *behind = ends[0];
  std::rotate(std::lower_bound(memory.begin(), behind, ends[0], better), behind, behind + 1);
  return memory.first(static_cast<size_t>(words) + 1);
}

}  // namespace hsm
