#include "gpu/engine/decode_search.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <stdexcept>

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr double kInfinity = std::numeric_limits<double>::infinity();
constexpr std::string_view kSearch = "GPU search";

}  // namespace

DecodeSearch::Question::Question(const Sizes& sizes)
    : first_row(layout.add<int32_t>(sizes.queries + 1)),
      query_of_row(layout.add<int32_t>(sizes.rows)),
      score(layout.add<double>(sizes.rows)),
      after(layout.add<Ranked>(sizes.queries)) {}

DecodeSearch::Answer::Answer(const Sizes& sizes)
    : best(layout.add<Ranked>(int64_t{sizes.queries} * sizes.kept)),
      more(layout.add<int32_t>(sizes.queries)),
      end_log_prob(layout.add<float>(sizes.rows)),
      expanded(layout.add<int64_t>(sizes.queries)) {}

DecodeSearch::Sizes DecodeSearch::sizes(const DecodeRows& rows, int64_t max_queries, int64_t max_parents,
                                        int64_t most_words) {
  const int64_t capacity = rows.expansion().capacity;
  const int64_t queries = std::min(max_queries, capacity);
  const int64_t most_pairs = std::max<int64_t>(max_parents * rows.head().clusters, 1);
  Sizes sizes{};
  sizes.queries = static_cast<int32_t>(queries);
  sizes.pairs_a_round =
      static_cast<int32_t>(std::min({capacity / queries, most_pairs, int64_t{dev::kMostPairsARound}}));
  sizes.kept = static_cast<int32_t>(std::clamp<int64_t>(most_words, 1, dev::kMostKept));
  sizes.rows = std::min(queries * max_parents, rows.max_rows());
  return sizes;
}

DecodeSearch::DecodeSearch(Arena& host, DeviceArena& device, DecodeRows& rows, const WordFilter& filter,
                           int64_t max_queries, int64_t max_parents, int64_t most_words)
    : rows_(&rows),
      filter_(&filter),
      end_of_sentence_(rows.model().end_of_sentence),
      sizes_(sizes(rows, max_queries, max_parents, most_words)),
      question_(sizes_),
      answer_(sizes_),
      question_memory_(host, device, question_.layout, "candidates", kSearch),
      answer_memory_(host, device, answer_.layout, "candidates", kSearch),
      expanded_(host.take<int64_t>(sizes_.queries, "candidates")),
      ragged_clusters_(rows.model().ragged_clusters()) {
  pass_.head = rows.head();
  pass_.memory = rows.expansion();
  pass_.kept = sizes_.kept;
  pass_.pairs_a_round = sizes_.pairs_a_round;
  pass_.first_row = question_memory_.device(question_.first_row);
  pass_.query_of_row = question_memory_.device(question_.query_of_row);
  pass_.score = question_memory_.device(question_.score);
  pass_.after = question_memory_.device(question_.after);
  pass_.root_log_sum = device.take<float>(sizes_.rows, kSearch);
  pass_.row_best = device.take<Ranked>(sizes_.rows * sizes_.kept, kSearch);
  pass_.last_pair = device.take<Ranked>(sizes_.queries, kSearch);
  pass_.pair_best =
      device.take<Ranked>(int64_t{sizes_.queries} * sizes_.pairs_a_round * sizes_.kept, kSearch);
  pass_.best = answer_memory_.device(answer_.best);
  pass_.more = answer_memory_.device(answer_.more);
  pass_.end_log_prob = answer_memory_.device(answer_.end_log_prob);
  pass_.expanded = answer_memory_.device(answer_.expanded);
  if (!host.measuring()) std::ranges::fill(expanded_, 0);  // as the device's memory
}

void DecodeSearch::run(std::span<CandidateQuery> queries) {
  for_groups(queries, sizes_.queries, [this](std::span<CandidateQuery> together) { run_together(together); });
}

void DecodeSearch::run_together(std::span<CandidateQuery> queries) {
  ask(queries);
  bool goes_on = true;
  while (goes_on) {
    question_memory_.upload(rows_->kernels());
    search_page(static_cast<int32_t>(queries.size()));
    goes_on = take_page(queries);
  }
  take_ends(queries);
  const auto counts = answer_memory_.host(answer_.expanded);
  for (size_t q = 0; q < queries.size(); ++q) {
    rows_->count_expansions(counts[q] - expanded_[q]);
    expanded_[q] = counts[q];
  }
}

void DecodeSearch::ask(std::span<const CandidateQuery> queries) {
  const auto first_row = question_memory_.host(question_.first_row);
  const auto score = question_memory_.host(question_.score);
  const auto query_of_row = question_memory_.host(question_.query_of_row);
  const int64_t origin = queries.front().first_row;
  size_t row = 0;
  for (size_t q = 0; q < queries.size(); ++q) {
    if (queries[q].first_row != origin + static_cast<int64_t>(row))
      throw std::logic_error("DecodeSearch: queries whose rows don't follow each other");
    first_row[q] = static_cast<int32_t>(row);
    for (const double hypothesis : queries[q].scores) {
      score[row] = hypothesis;
      query_of_row[row++] = static_cast<int32_t>(q);
    }
    question_memory_.host(question_.after)[q] = dev::first_rank();
  }
  first_row[queries.size()] = static_cast<int32_t>(row);
  possible_ += static_cast<int64_t>(row) * ragged_clusters_;
  pass_.queries = static_cast<int32_t>(queries.size());
  pass_.root = rows_->root(origin, static_cast<int64_t>(row));
}

void DecodeSearch::search_page(int32_t queries) {
  dev::DecodeKernels& kernels = rows_->kernels();
  kernels.search_start(pass_);
  int blind_rounds = ragged_clusters_ > 0 ? 2 : 0;
  while (true) {
    for (; blind_rounds > 0; --blind_rounds) kernels.search_round(pass_);
    answer_memory_.download(kernels);
    if (std::ranges::count(answer_memory_.host(answer_.more).first(static_cast<size_t>(queries)), 0) ==
        queries)
      return;
    blind_rounds = 1;
  }
}

// Whether a query needs words that come after this page.
bool DecodeSearch::take_page(std::span<CandidateQuery> queries) {
  bool goes_on = false;
  for (size_t q = 0; q < queries.size(); ++q) {
    CandidateQuery& query = queries[q];
    const auto kept = static_cast<size_t>(sizes_.kept);
    const auto page = answer_memory_.host(answer_.best).subspan(q * kept, kept);
    for (const Ranked& found : page) {
      if (found.score == kInfinity) {
        throw not_numbers();
      }
      if (found.score == -kInfinity) break;
      if (std::ranges::binary_search(query.excluded, found.first)) continue;
      query.words.offer({found.score, found.first, found.second});
    }
    const bool enough = page.back().score == -kInfinity || query.words.floor() > -kInfinity;
    question_memory_.host(question_.after)[q] = enough ? dev::no_rank() : page.back();
    goes_on = goes_on || !enough;
  }
  return goes_on;
}

// End symbols below the floor of the words can't be among the best, as in CandidateSearch.
void DecodeSearch::take_ends(std::span<CandidateQuery> queries) const {
  const auto log_probs = answer_memory_.host(answer_.end_log_prob);
  size_t row = 0;
  for (CandidateQuery& query : queries) {
    for (size_t parent = 0; parent < query.scores.size(); ++parent, ++row) {
      if (std::isnan(log_probs[row])) {
        throw not_numbers();
      }
      const double score = query.scores[parent] + double{log_probs[row]};
      if (query.end_allowed && filter_->allows(end_of_sentence_) && score >= query.words.floor())
        query.ends.offer({score, end_of_sentence_, static_cast<int32_t>(parent)});
    }
  }
}

}  // namespace hsm
