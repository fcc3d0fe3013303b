#pragma once
#include <set>
#include <vector>

#include "emulation/search_harness.h"
#include "kernels/device/draw.h"

namespace hsm::emulation {

/// Words to be drawn after rows of a search's batch.
struct DrawCase {
  SearchCase search;  ///< its queries are not asked
  int32_t draws = 6;
  double temperature = 1;
  bool end_allowed = true;
};

template <class P>
struct DrawKernels {
  using Column = device::DrawColumn<P, 32>;
  using Leaf = device::DrawLeaf<P, 32>;
};

/// Memory of a round's draws, and what came of them.
template <class P>
class DrawRun {
 public:
  using S = typename P::Sum;

  explicit DrawRun(const DrawCase& c) : case_(c), search_(c.search) {
    const auto rows = static_cast<int32_t>(c.search.head.tokens);
    for (int32_t i = 0; i < c.draws; ++i) {
      row_.push_back(i * 5 % rows);
      request_.push_back({static_cast<uint64_t>(100 + i), 3, row_.back(), c.end_allowed ? 1 : 0});
    }
    device::SearchArgs<P>& args = args_.search;
    args = search_.args();
    args.queries = c.draws;
    args.pairs_a_round = 1;
    args.first_row = {row_.data(), c.draws};
    args.pair = take(pair_, c.draws);
    args.pair_count = take(pair_count_, c.draws);
    args.order = take(order_, c.draws);
    args.item_start = take(item_start_, c.draws + 1);
    args.item_count = take(item_count_, 1);
    args.leaf_logit = take(leaf_logit_, c.draws * args.leaf_stride);
    args.leaf_part = take(leaf_part_, c.draws);
    args_.power = 1 / c.temperature;
    args_.key0 = 17 ^ (kPurpose * 0x85EBCA6BU);
    args_.key1 = kPurpose * 0xC2B2AE35U;
    args_.request = {request_.data(), c.draws};
    args_.drawn = take(drawn_, c.draws);
    args_.log_weight = take(log_weight_, c.draws * args.head.plan.sizes.root());
  }

  /// Runs to the end; returns the rounds it took.
  template <class Launch>
  int run(Launch launch) {
    launch.template operator()<typename SearchKernels<P>::Root>(args_.search);
    int rounds = 0;
    do {
      if (++rounds > 1000) throw Violation("the draws do not end");
      args_.starts = rounds == 1;
      launch.template operator()<typename DrawKernels<P>::Column>(args_);
      launch.template operator()<typename SearchKernels<P>::Sort>(args_.search);
      launch.template operator()<typename SearchKernels<P>::Leaf>(args_.search);
      launch.template operator()<typename DrawKernels<P>::Leaf>(args_);
    } while (std::ranges::count(drawn_, device::kUndecided, &device::DrawnWord::word) > 0);
    return rounds;
  }

  [[nodiscard]] const std::vector<device::DrawnWord>& drawn() const { return drawn_; }
  [[nodiscard]] SearchRun<P>& search() { return search_; }

  /// What a draw comes to by the definition, in double: column by column, then word by word.
  [[nodiscard]] device::DrawnWord expected(int32_t draw) const;

 private:
  static constexpr uint32_t kPurpose = 8;  // sampling

  template <class V>
  device::View<V> take(std::vector<V>& values, int64_t count) {
    values.resize(static_cast<size_t>(count));
    if (count > 0) std::memset(static_cast<void*>(values.data()), 0xFF, values.size() * sizeof(V));
    return {values.data(), count};
  }
  static int64_t pick(const std::vector<double>& weights, double u) {
    double left = u * std::accumulate(weights.begin(), weights.end(), 0.0);
    int64_t last = -1;
    for (size_t i = 0; i < weights.size(); ++i) {
      if (weights[i] <= 0) continue;
      last = static_cast<int64_t>(i);
      if (left < weights[i]) break;
      left -= weights[i];
    }
    return last;
  }

  DrawCase case_;
  SearchRun<P> search_;
  device::DrawArgs<P> args_;
  std::vector<int32_t> row_, pair_count_, order_, item_start_, item_count_;
  std::vector<device::DrawRequest> request_;
  std::vector<device::DrawnWord> drawn_;
  std::vector<Ranked> pair_;
  std::vector<S> log_weight_, leaf_logit_;
  std::vector<device::LogSum<S>> leaf_part_;
};

template <class P>
device::DrawnWord DrawRun<P>::expected(int32_t draw) const {
  const auto& sizes = args_.search.head.plan.sizes;
  const auto& offsets = args_.search.head.in.cluster_offsets;
  const int64_t row = row_[static_cast<size_t>(draw)];
  const device::DrawRequest& request = request_[static_cast<size_t>(draw)];
  const CounterRandom random(17, Purpose::sampling);
  const double power = 1 / case_.temperature;
  const auto words_of = [&](int64_t column) -> std::pair<int64_t, int64_t> {
    if (column < sizes.shortlist) return {column, column + 1};
    return {offsets.p[column - sizes.shortlist], offsets.p[column - sizes.shortlist + 1]};
  };
  // Weights of the words of a column, whatever is forbidden 0.
  const auto weights_of = [&](int64_t column) {
    std::vector<double> weights;
    const auto [first, end] = words_of(column);
    for (int64_t word_row = first; word_row < end; ++word_row) {
      const bool blocked = std::ranges::count(case_.search.forbidden, search_.word(word_row)) > 0 ||
                           (word_row == case_.search.end_row && !case_.end_allowed);
      weights.push_back(blocked ? 0 : std::exp(power * search_.log_prob(row, word_row)));
    }
    return weights;
  };
  std::vector<double> bounds;
  for (int64_t column = 0; column < sizes.root(); ++column) {
    const auto [first, end] = words_of(column);
    if (end - first == 1) {
      bounds.push_back(weights_of(column)[0]);
      continue;
    }
    double cluster = 0;  // P(c)
    for (int64_t word_row = first; word_row < end; ++word_row)
      cluster += std::exp(search_.log_prob(row, word_row));
    bounds.push_back(std::pow(cluster, power) *
                     std::pow(static_cast<double>(end - first), std::max(0.0, 1 - power)));
  }
  const auto uniform = [&](uint64_t index) {
    const auto words = random.words(request.sequence, (request.step << 24) | index);
    return std::pair{static_cast<double>((uint64_t{words[1]} << 32 | words[0]) >> 11) * 0x1.0p-53,
                     static_cast<double>((uint64_t{words[3]} << 32 | words[2]) >> 11) * 0x1.0p-53};
  };
  for (int32_t count = 0;; ++count) {
    const auto proposal = 2 * static_cast<uint64_t>(count);
    const int64_t column = pick(bounds, uniform(proposal).first);
    if (column < 0) return {0, device::kNothing, count + 1};
    const auto [first, end] = words_of(column);
    int64_t word_row = first;
    if (end - first > 1) {
      const std::vector<double> weights = weights_of(column);
      const double mass = std::accumulate(weights.begin(), weights.end(), 0.0);
      if (uniform(proposal).second * bounds[static_cast<size_t>(column)] >= mass) {
        bounds[static_cast<size_t>(column)] = mass;
        continue;
      }
      word_row += pick(weights, uniform(proposal + 1).first);
    }
    return {search_.log_prob(row, word_row), search_.word(word_row), count + 1};
  }
}

}  // namespace hsm::emulation
