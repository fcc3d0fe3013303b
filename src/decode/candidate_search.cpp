#include "decode/candidate_search.h"

#include <algorithm>
#include <limits>

namespace hsm {
namespace {

constexpr double kInfinity = std::numeric_limits<double>::infinity();

// Pairs of one query that a round may hold; more rounds follow where that isn't enough.
int64_t round_capacity(int64_t parents) {
  return std::clamp<int64_t>(4 * parents, 32, 4096);
}

int64_t count_single(const Scorer& scorer) {
  int64_t count = 0;
  for (int64_t c = 0; c < scorer.clusters(); ++c) count += scorer.cluster_words(c).size() == 1 ? 1 : 0;
  return count;
}

}  // namespace

CandidateSearch::CandidateSearch(Arena& arena, const RowBatch& rows, Expander& expander,
                                 const WordFilter& filter, int64_t max_queries, int64_t max_parents)
    : rows_(&rows),
      expander_(&expander),
      filter_(&filter),
      scorer_(&rows.scorer()),
      end_(scorer_->end_of_sentence()),
      capacity_(round_capacity(max_parents)),
      pairs_(arena.take<Pair>(max_queries * capacity_, "pairs to expand")),
      progress_(arena.take<Progress>(max_queries, "pairs to expand")),
      single_(arena.take<int32_t>(count_single(*scorer_), "clusters of one word")) {
  const Scorer& scorer = *scorer_;
  ragged_clusters_ = scorer.clusters() - count_single(scorer);
  if (arena.measuring()) return;
  auto single = single_.begin();
  for (int32_t cluster = 0; cluster < scorer.clusters(); ++cluster) {
    if (scorer.cluster_words(cluster).size() == 1) *single++ = cluster;
  }
}

bool CandidateSearch::before(const Pair& a, const Pair& b) {
  if (a.bound != b.bound) return a.bound > b.bound;
  if (a.parent != b.parent) return a.parent < b.parent;
  return a.cluster < b.cluster;
}

std::span<CandidateSearch::Pair> CandidateSearch::pairs_of(size_t query) const {
  return pairs_.subspan(query * static_cast<size_t>(capacity_), static_cast<size_t>(capacity_));
}

void CandidateSearch::run(std::span<CandidateQuery> queries) {
  rows_->pool().run(static_cast<int64_t>(queries.size()), [&](int64_t q, int) {
    start(queries[static_cast<size_t>(q)], progress_[static_cast<size_t>(q)]);
  });
  for (const CandidateQuery& query : queries) {
    possible_ += static_cast<int64_t>(query.scores.size()) * ragged_clusters_;
  }
  const auto unfinished = [&] {
    return std::any_of(progress_.begin(), progress_.begin() + static_cast<int64_t>(queries.size()),
                       [](const Progress& progress) { return progress.more; });
  };
  while (unfinished()) {
    rows_->pool().run(static_cast<int64_t>(queries.size()), [&](int64_t q, int) {
      gather(queries[static_cast<size_t>(q)], static_cast<size_t>(q));
    });
    expand_round(queries);
  }
}

// Shortlist words, and clusters of one word, whose probability within is 1.
void CandidateSearch::start(CandidateQuery& query, Progress& progress) {
  const auto shortlist = scorer_->shortlist_words();
  for (size_t parent = 0; parent < query.scores.size(); ++parent) {
    const auto root = rows_->root(query.first_row + static_cast<int64_t>(parent));
    const double score = query.scores[parent];
    for (size_t column = 0; column < shortlist.size(); ++column) {
      offer(query, {score + double{root[column]}, shortlist[column], static_cast<int32_t>(parent)});
    }
    for (const int32_t cluster : single_) {
      const double bound = score + double{root[shortlist.size() + static_cast<size_t>(cluster)]};
      offer(query, {bound, scorer_->cluster_words(cluster)[0], static_cast<int32_t>(parent)});
    }
  }
  const auto parents = static_cast<int64_t>(query.scores.size());
  progress = {
      {kInfinity, 0, 0}, std::min(std::max<int64_t>(parents, 2), capacity_), 0, 0, ragged_clusters_ > 0};
}

// The best pairs after the last one, as far as their bound lets them matter.
void CandidateSearch::gather(const CandidateQuery& query, size_t index) {
  Progress& progress = progress_[index];
  progress.found = 0;
  progress.next = 0;
  if (!progress.more) return;
  const auto heap = pairs_of(index).first(static_cast<size_t>(progress.wanted));
  const auto shortlist = static_cast<size_t>(scorer_->shortlist());
  const double floor = query.words.floor();
  size_t count = 0;
  for (size_t parent = 0; parent < query.scores.size(); ++parent) {
    const auto root = rows_->root(query.first_row + static_cast<int64_t>(parent)).subspan(shortlist);
    for (size_t cluster = 0; cluster < root.size(); ++cluster) {
      const Pair pair{query.scores[parent] + double{root[cluster]}, static_cast<int32_t>(parent),
                      static_cast<int32_t>(cluster)};
      if (!(pair.bound >= floor) || pair.bound == -kInfinity || !before(progress.last, pair)) continue;
      if (count == heap.size() && !before(pair, heap[0])) continue;
      if (scorer_->cluster_words(static_cast<int64_t>(cluster)).size() == 1) continue;
      if (count == heap.size()) std::pop_heap(heap.begin(), heap.end(), before);
      if (count < heap.size()) ++count;
      heap[count - 1] = pair;
      std::push_heap(heap.begin(), heap.begin() + static_cast<int64_t>(count), before);
    }
  }
  std::sort_heap(heap.begin(), heap.begin() + static_cast<int64_t>(count), before);
  progress.found = static_cast<int64_t>(count);
  progress.more = count == heap.size();
  if (count > 0) progress.last = heap[count - 1];
  progress.wanted = std::min(2 * progress.wanted, capacity_);
}

void CandidateSearch::expand_round(std::span<CandidateQuery> queries) {
  while (true) {
    expander_->clear();
    for (size_t q = 0; q < queries.size(); ++q) {
      Progress& progress = progress_[q];
      for (; progress.next < progress.found && !expander_->full(); ++progress.next) {
        const Pair& pair = pairs_of(q)[static_cast<size_t>(progress.next)];
        if (pair.bound < queries[q].words.floor()) {  // and so are all that follow
          progress.next = progress.found;
          progress.more = false;
          break;
        }
        expander_->add({pair.cluster, static_cast<int32_t>(queries[q].first_row) + pair.parent,
                        static_cast<int32_t>(q), pair.parent});
      }
    }
    if (expander_->empty()) return;
    expander_->run(*rows_);
    for (size_t i = 0; i < expander_->items().size(); ++i) {
      const Expansion& item = expander_->items()[i];
      offer_leaves(queries[static_cast<size_t>(item.owner)], item,
                   expander_->leaves(static_cast<int64_t>(i)));
    }
  }
}

void CandidateSearch::offer_leaves(CandidateQuery& query, const Expansion& item,
                                   std::span<const float> leaves) const {
  const double score = query.scores[static_cast<size_t>(item.tag)];
  const auto column = static_cast<size_t>(scorer_->shortlist() + item.cluster);
  const double root = double{rows_->root(item.row)[column]};
  const auto words = scorer_->cluster_words(item.cluster);
  for (size_t leaf = 0; leaf < leaves.size(); ++leaf) {
    offer(query, {score + (root + double{leaves[leaf]}), words[leaf], item.tag});
  }
}

// An end symbol below the floor of the words has as many words before it as are asked for, so it can't be
// among the best.
void CandidateSearch::offer(CandidateQuery& query, const Candidate& candidate) const {
  if (!(candidate.score >= query.words.floor())) return;
  if (!filter_->allows(candidate.word)) return;
  if (candidate.word == end_) {
    if (query.end_allowed) query.ends.offer(candidate);
    return;
  }
  if (std::binary_search(query.excluded.begin(), query.excluded.end(), candidate.word)) return;
  query.words.offer(candidate);
}

}  // namespace hsm
