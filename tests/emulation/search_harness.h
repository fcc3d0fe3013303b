#pragma once
#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <vector>

#include "emulation/head_harness.h"
#include "emulation/lane_context.h"
#include "kernels/device/search.h"

namespace hsm::emulation {

using device::Ranked;

/// A question for the device's search: rows of hidden states shared out among queries, with scores.
struct SearchCase {
  HeadCase head;                       ///< tokens: rows in all
  std::vector<int32_t> rows_of_query;  ///< adds up to head.tokens
  int32_t kept = 4;
  int32_t pairs_a_round = 4;
  int32_t end_row = 0;
  std::vector<int32_t> forbidden{};  ///< word ids
  bool equal_scores = false;         ///< of the hypotheses
};

template <class P>
struct SearchKernels {
  using Root = device::RootLogits<P, device::ForwardShape<16, 32, 16, 1, 2, 3, 0>>;
  using Leaf = device::LeafLogits<P, device::ForwardShape<16, 16, 16, 1, 1, 2, 0>>;
  using Row = device::RowBest<P, 32, 32>;
  using MergeRows = device::MergeBest<P, true, 32, 32>;
  using MergePairs = device::MergeBest<P, false, 32, 32>;
  using Gather = device::GatherPairs<P, 64, 64>;
  using Sort = device::SortPairs<P, 128, 16, 64>;
  using Pair = device::PairBest<P, 32, 32>;
};

/// Memory of a search, poisoned, and its answer.
template <class P>
class SearchRun {
 public:
  using S = typename P::Sum;

  explicit SearchRun(const SearchCase& c)
      : case_(c),
        head_(c.head.problem(),
              device::tiles_of<device::ForwardShape<16, 32, 16, 1, 2, 3, 0>,
                               device::ForwardShape<16, 16, 16, 1, 1, 2, 0>,
                               device::BackwardShape<16, 16, 32, 1, 1, 2, 2, false>>(),
              1) {
    head_.plan().columns_a_split = 32;
    head_.plan().root_splits = device::divide_up<int64_t>(head_.plan().sizes.root(), 32);
    head_.prepare();
    const auto& sizes = head_.plan().sizes;
    first_row_ = {0};
    for (size_t q = 0; q < c.rows_of_query.size(); ++q) {
      for (int32_t r = 0; r < c.rows_of_query[q]; ++r) query_of_row_.push_back(static_cast<int32_t>(q));
      first_row_.push_back(first_row_.back() + c.rows_of_query[q]);
    }
    const CounterRandom random(3, Purpose::sampling);
    for (int64_t row = 0; row < sizes.tokens; ++row) {
      score_.push_back(c.equal_scores ? -1.5 : -4 * random.uniform(1, static_cast<uint64_t>(row)));
    }
    // Public ids in another order than the rows.
    for (int32_t row = 0; row < sizes.words; ++row) {
      word_of_row_.push_back(static_cast<int32_t>((row * 7 + 3) % sizes.words));
    }
    if (sizes.words % 7 == 0) throw std::logic_error("words: a multiple of 7");
    forbidden_.assign(static_cast<size_t>(sizes.words / 32 + 1), 0);
    for (const int32_t word : c.forbidden) forbidden_[static_cast<size_t>(word / 32)] |= 1U << (word % 32);

    const auto queries = static_cast<int32_t>(c.rows_of_query.size());
    const int64_t slots = int64_t{queries} * c.pairs_a_round;
    args_.head = head_.args();
    args_.queries = queries;
    args_.rows = static_cast<int32_t>(sizes.tokens);
    args_.kept = c.kept;
    args_.pairs_a_round = c.pairs_a_round;
    args_.leaf_stride = sizes.largest_cluster;
    args_.end_row = c.end_row;
    args_.first_row = {first_row_.data(), queries + 1};
    args_.query_of_row = {query_of_row_.data(), sizes.tokens};
    args_.score = {score_.data(), sizes.tokens};
    args_.word_of_row = {word_of_row_.data(), sizes.words};
    args_.forbidden = {forbidden_.data(), static_cast<int64_t>(forbidden_.size())};
    after_.assign(static_cast<size_t>(queries), device::first_rank());
    args_.after = {after_.data(), queries};
    args_.root_logit = take(root_logit_, sizes.tokens * sizes.root());
    args_.root_part = take(root_part_, head_.plan().root_splits * sizes.tokens);
    args_.root_log_sum = take(root_log_sum_, sizes.tokens);
    args_.row_best = take(row_best_, sizes.tokens * c.kept);
    args_.pair = take(pair_, slots);
    args_.last_pair = take(last_pair_, queries);
    args_.pair_count = take(pair_count_, queries);
    args_.order = take(order_, slots);
    args_.item_start = take(item_start_, slots + 1);
    args_.item_count = take(item_count_, 1);
    args_.leaf_logit = take(leaf_logit_, slots * args_.leaf_stride);
    args_.leaf_part = take(leaf_part_, slots);
    args_.pair_best = take(pair_best_, slots * c.kept);
    args_.best = take(best_, queries * c.kept);
    args_.more = take(more_, queries);
    args_.end_log_prob = take(end_log_prob_, sizes.tokens);
    expanded_.assign(static_cast<size_t>(queries), 0);
    args_.expanded = {expanded_.data(), queries};
  }

  /// Runs to the end; returns the rounds it took. `launch.operator()<Body>(args)` runs one kernel.
  template <class Launch>
  int run(Launch launch) {
    using Kernels = SearchKernels<P>;
    launch.template operator()<typename Kernels::Root>(args_);
    launch.template operator()<typename Kernels::Row>(args_);
    launch.template operator()<typename Kernels::MergeRows>(args_);
    int rounds = 0;
    while (std::ranges::count(more_, 0) != args_.queries) {
      if (++rounds > 1000) throw Violation("the search does not end");
      launch.template operator()<typename Kernels::Gather>(args_);
      launch.template operator()<typename Kernels::Sort>(args_);
      launch.template operator()<typename Kernels::Leaf>(args_);
      launch.template operator()<typename Kernels::Pair>(args_);
      launch.template operator()<typename Kernels::MergePairs>(args_);
    }
    return rounds;
  }

  [[nodiscard]] std::vector<Ranked> best(int query) const {
    const auto first = best_.begin() + query * case_.kept;
    return {first, first + case_.kept};
  }
  [[nodiscard]] const std::vector<float>& end_log_prob() const { return end_log_prob_; }
  [[nodiscard]] int64_t expanded(int query) const { return expanded_[static_cast<size_t>(query)]; }
  /// The next run looks for what comes after the words found last.
  void turn_page() {
    for (size_t query = 0; query < after_.size(); ++query)
      after_[query] = best(static_cast<int>(query)).back();
  }

  /// Nor does it look for anything more of this query.
  void close(int query) { after_[static_cast<size_t>(query)] = device::no_rank(); }

  /// Every word of every hypothesis, ranked, and the first `kept`: what the search must find.
  [[nodiscard]] std::vector<Ranked> dense(int query) const {
    return dense(query, static_cast<size_t>(case_.kept));
  }
  [[nodiscard]] std::vector<Ranked> dense(int query, size_t kept) const;
  [[nodiscard]] double log_prob(int64_t row, int64_t word_row) const;
  [[nodiscard]] int32_t word(int64_t word_row) const { return word_of_row_[static_cast<size_t>(word_row)]; }

  /// Puts what is not a number into a row's hidden states, or a word's weights.
  void spoil_row(int64_t row) { spoil(args_.head.in.hidden, row); }
  void spoil_word(int64_t word_row) { spoil(args_.head.in.word, word_row); }
  [[nodiscard]] const device::SearchArgs<P>& args() const { return args_; }

 private:
  void spoil(device::View<const typename P::T> values, int64_t row) {
    const_cast<typename P::T*>(values.p)[row * head_.plan().sizes.dim] =
        std::numeric_limits<typename P::T>::quiet_NaN();
  }
  template <class V>
  device::View<V> take(std::vector<V>& values, int64_t count) {
    values.resize(static_cast<size_t>(count));
    if (count > 0) std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(V));
    return {values.data(), count};
  }
  [[nodiscard]] std::vector<double> logits(int64_t row, const std::vector<double>& weights,
                                           const std::vector<double>& bias, int64_t first,
                                           int64_t end) const {
    const auto& p = head_.rounded();
    std::vector<double> z;
    for (int64_t v = first; v < end; ++v) {
      double sum = bias[static_cast<size_t>(v)];
      for (int64_t d = 0; d < p.dim; ++d) {
        sum += p.hidden[static_cast<size_t>(row * p.dim + d)] * weights[static_cast<size_t>(v * p.dim + d)];
      }
      z.push_back(sum);
    }
    return z;
  }

  SearchCase case_;
  HeadRun<P> head_;
  device::SearchArgs<P> args_;
  std::vector<int32_t> first_row_, query_of_row_, word_of_row_, pair_count_, order_, item_start_, item_count_,
      more_;
  std::vector<uint32_t> forbidden_;
  std::vector<double> score_;
  std::vector<S> root_logit_, root_log_sum_, leaf_logit_;
  std::vector<device::LogSum<S>> root_part_, leaf_part_;
  std::vector<Ranked> after_, row_best_, pair_, last_pair_, pair_best_, best_;
  std::vector<int64_t> expanded_;
  std::vector<float> end_log_prob_;
};

template <class P>
double SearchRun<P>::log_prob(int64_t row, int64_t word_row) const {
  const auto& p = head_.rounded();
  std::vector<double> root = logits(row, p.word, p.word_bias, 0, p.shortlist);
  const auto clusters = logits(row, p.cluster, p.cluster_bias, 0, p.clusters());
  root.insert(root.end(), clusters.begin(), clusters.end());
  const double lse = reference::log_sum_exp(root);
  if (word_row < p.shortlist) return root[static_cast<size_t>(word_row)] - lse;
  size_t c = 0;
  while (p.cluster_offsets[c + 1] <= word_row) ++c;
  const auto leaves = logits(row, p.word, p.word_bias, p.cluster_offsets[c], p.cluster_offsets[c + 1]);
  return root[static_cast<size_t>(p.shortlist) + c] - lse +
         leaves[static_cast<size_t>(word_row - p.cluster_offsets[c])] - reference::log_sum_exp(leaves);
}

template <class P>
std::vector<Ranked> SearchRun<P>::dense(int query, size_t kept) const {
  std::vector<Ranked> all;
  const auto q = static_cast<size_t>(query);
  for (int32_t row = first_row_[q]; row < first_row_[q + 1]; ++row) {
    for (int64_t word_row = 0; word_row < head_.rounded().words; ++word_row) {
      const int32_t word = word_of_row_[static_cast<size_t>(word_row)];
      if (word_row == case_.end_row || std::ranges::count(case_.forbidden, word) != 0) continue;
      all.push_back({score_[static_cast<size_t>(row)] + log_prob(row, word_row), word, row - first_row_[q]});
    }
  }
  std::ranges::sort(all, device::before);
  all.resize(std::min(all.size(), kept));
  return all;
}

}  // namespace hsm::emulation
