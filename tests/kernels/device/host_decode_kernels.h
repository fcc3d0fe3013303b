#pragma once
#include <algorithm>
#include <cmath>
#include <cstring>
#include <vector>

#include "kernels/device/decode_kernels.h"
#include "kernels/device/draw.h"
#include "kernels/device/host_launch.h"
#include "kernels/device/row_bodies.h"

namespace hsm::test {

/// Decoding's kernels in host memory, for whoever calls them: bodies for an index are the device's own; what
/// blocks do together, and is proved in tests/emulation, is written out from its definition.
class HostDecodeKernels final : public kernels::device::DecodeKernels {
 public:
  using DecodeHead = kernels::device::DecodeHead;
  using RootRows = kernels::device::RootRows;
  using Ranked = kernels::device::Ranked;
  using LogSum = kernels::device::LogSum<float>;

  void upload(const void* from, int64_t bytes, void* to) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void download(const void* from, int64_t bytes, void* to) override {
    std::memcpy(to, from, static_cast<size_t>(bytes));
  }
  void gather_rows(const float* table, int64_t width, const int32_t* rows, int64_t count,
                   float* out) override {
    launch_(count * width, kernels::device::GatherRows<float>{table, width, rows, nullptr, out});
  }
  void cell_step(const kernels::device::CellStep& step, int64_t rows) override {
    launch_(rows * step.width, step);
  }
  void linear(const kernels::device::LinearPass& pass) override {
    for (int64_t row = 0; row < pass.rows; ++row) {
      for (int64_t column = 0; column < pass.outputs; ++column) {
        pass.y[row * pass.outputs + column] =
            product(pass.x + row * pass.inputs, pass.weight + column * pass.inputs, pass.inputs) +
            pass.bias[column];
      }
    }
  }

  [[nodiscard]] int64_t root_parts(int64_t columns) const override { return columns > 4 ? 3 : 1; }
  void root_scores(const DecodeHead& head, const RootRows& rows) override;
  void search_start(const kernels::device::SearchPass& pass) override;
  void search_round(const kernels::device::SearchPass& pass) override;
  void word_scores(const kernels::device::WordScorePass& pass) override;
  void draw_round(const kernels::device::DrawPass& pass) override;

 private:
  static float product(const float* a, const float* b, int64_t count) {
    double sum = 0;
    for (int64_t i = 0; i < count; ++i) sum += double{a[i]} * double{b[i]};
    return static_cast<float>(sum);
  }
  static LogSum sum_of(const float* logits, int64_t count) {
    LogSum sum = kernels::device::no_terms<float>();
    for (int64_t i = 0; i < count; ++i) sum = join(sum, {logits[i], 1});
    return sum;
  }
  static double score(float logit, float log_sum) { return double{std::min(logit - log_sum, 0.0F)}; }
  [[nodiscard]] LogSum root_sum(const DecodeHead& head, const RootRows& rows, int64_t row) const {
    LogSum sum = kernels::device::no_terms<float>();
    const int64_t parts = root_parts(head.root());
    for (int64_t i = 0; i < parts; ++i) sum = join(sum, rows.part[row * parts + i]);
    return sum;
  }
  static int64_t words_of(const DecodeHead& head, int64_t cluster) {
    return head.cluster_offsets[cluster + 1] - head.cluster_offsets[cluster];
  }
  static bool allowed(const DecodeHead& head, int32_t word) {
    return ((head.forbidden[word / 32] >> (word % 32)) & 1U) == 0;
  }
  /// Expands the pair of a slot.
  static void expand(const DecodeHead& head, const RootRows& rows,
                     const kernels::device::ExpansionMemory& memory, int64_t slot, int64_t row) {
    const int64_t cluster = memory.pair[slot].second;
    const int64_t first = head.cluster_offsets[cluster];
    float* logits = memory.leaf_logit + slot * head.largest_cluster;
    for (int64_t leaf = 0; leaf < words_of(head, cluster); ++leaf) {
      logits[leaf] = product(rows.hidden + row * head.dim, head.word + (first + leaf) * head.dim, head.dim) +
                     head.word_bias[first + leaf];
    }
    memory.leaf_part[slot] = sum_of(logits, words_of(head, cluster));
  }
  /// Adds an item to a query's words, unless it stands before what is asked for.
  static void offer(const kernels::device::SearchPass& pass, std::vector<Ranked>& items, int32_t query,
                    Ranked item) {
    item.score = kernels::device::visible(item.score);
    if (before(pass.after[query], item)) items.push_back(item);
  }
  static void keep_best(const kernels::device::SearchPass& pass, std::vector<Ranked>& items, int32_t query) {
    std::ranges::sort(items, kernels::device::before);
    items.resize(static_cast<size_t>(pass.kept), kernels::device::no_rank());
    std::ranges::copy(items, pass.best + int64_t{query} * pass.kept);
  }

  HostLaunch launch_{3};
};

inline void HostDecodeKernels::root_scores(const DecodeHead& head, const RootRows& rows) {
  const int64_t parts = root_parts(head.root());
  const int64_t each = (head.root() + parts - 1) / parts;
  for (int64_t row = 0; row < rows.rows; ++row) {
    const float* hidden = rows.hidden + row * head.dim;
    float* logits = rows.logit + row * head.root();
    for (int64_t k = 0; k < head.shortlist; ++k) {
      logits[k] = product(hidden, head.word + k * head.dim, head.dim) + head.word_bias[k];
    }
    for (int64_t c = 0; c < head.clusters; ++c) {
      logits[head.shortlist + c] =
          product(hidden, head.cluster + c * head.dim, head.dim) + head.cluster_bias[c];
    }
    for (int64_t part = 0; part < parts; ++part) {
      const int64_t first = std::min(part * each, head.root());
      rows.part[row * parts + part] = sum_of(logits + first, std::min(each, head.root() - first));
    }
  }
}

inline void HostDecodeKernels::search_start(const kernels::device::SearchPass& pass) {
  const DecodeHead& head = pass.head;
  for (int32_t query = 0; query < pass.queries; ++query) {
    std::vector<Ranked> items;
    for (int32_t row = pass.first_row[query]; row < pass.first_row[query + 1]; ++row) {
      const float log_sum = value_of(root_sum(head, pass.root, row));
      const float* logits = pass.root.logit + row * head.root();
      pass.root_log_sum[row] = log_sum;
      pass.end_log_prob[row] = static_cast<float>(score(logits[head.end_row], log_sum));
      for (int64_t column = 0; column < head.root(); ++column) {
        int64_t word_row = column;
        if (column >= head.shortlist) {
          if (words_of(head, column - head.shortlist) != 1) continue;
          word_row = head.cluster_offsets[column - head.shortlist];
        }
        const int32_t word = head.word_of_row[word_row];
        if (word_row == head.end_row || !allowed(head, word)) continue;
        offer(pass, items, query,
              {pass.score[row] + score(logits[column], log_sum), word, row - pass.first_row[query]});
      }
    }
    keep_best(pass, items, query);
    pass.last_pair[query] = kernels::device::first_rank();
    pass.more[query] = head.largest_cluster > 1 && pass.after[query].score > -INFINITY ? 1 : 0;
  }
}

inline void HostDecodeKernels::search_round(const kernels::device::SearchPass& pass) {
  const DecodeHead& head = pass.head;
  for (int32_t query = 0; query < pass.queries; ++query) {
    if (pass.more[query] == 0) continue;
    const double floor = pass.best[int64_t{query + 1} * pass.kept - 1].score;
    std::vector<Ranked> pairs;
    for (int32_t row = pass.first_row[query]; row < pass.first_row[query + 1]; ++row) {
      for (int32_t cluster = 0; cluster < head.clusters; ++cluster) {
        const float logit = pass.root.logit[row * head.root() + head.shortlist + cluster];
        const Ranked pair{pass.score[row] + score(logit, pass.root_log_sum[row]), row - pass.first_row[query],
                          cluster};
        if (words_of(head, cluster) > 1 && pair.score >= floor && before(pass.last_pair[query], pair))
          pairs.push_back(pair);
      }
    }
    std::ranges::sort(pairs, kernels::device::before);
    const bool full = pairs.size() >= static_cast<size_t>(pass.pairs_a_round);
    if (full) pairs.resize(static_cast<size_t>(pass.pairs_a_round));
    std::vector<Ranked> items(pass.best + int64_t{query} * pass.kept,
                              pass.best + int64_t{query + 1} * pass.kept);
    for (size_t i = 0; i < pairs.size(); ++i) {
      const int64_t slot = int64_t{query} * pass.pairs_a_round + static_cast<int64_t>(i);
      const int32_t row = pass.first_row[query] + pairs[i].first;
      pass.memory.pair[slot] = pairs[i];
      expand(head, pass.root, pass.memory, slot, row);
      const double root = score(pass.root.logit[row * head.root() + head.shortlist + pairs[i].second],
                                pass.root_log_sum[row]);
      for (int64_t leaf = 0; leaf < words_of(head, pairs[i].second); ++leaf) {
        const int32_t word = head.word_of_row[head.cluster_offsets[pairs[i].second] + leaf];
        const double within = score(pass.memory.leaf_logit[slot * head.largest_cluster + leaf],
                                    value_of(pass.memory.leaf_part[slot]));
        if (allowed(head, word))
          offer(pass, items, query, {pass.score[row] + (root + within), word, pairs[i].first});
      }
    }
    keep_best(pass, items, query);
    pass.expanded[query] += static_cast<int64_t>(pairs.size());
    if (!pairs.empty()) pass.last_pair[query] = pairs.back();
    pass.more[query] =
        full && pairs.back().score >= pass.best[int64_t{query + 1} * pass.kept - 1].score ? 1 : 0;
  }
}

inline void HostDecodeKernels::word_scores(const kernels::device::WordScorePass& pass) {
  for (int64_t i = 0; i < pass.questions; ++i) {
    if (pass.memory.pair_count[i] != 0) expand(pass.head, pass.root, pass.memory, i, pass.row[i]);
  }
  launch_(pass.questions, kernels::device::WordScore{
                              pass.head.root(), root_parts(pass.head.root()), pass.root.logit, pass.root.part,
                              pass.row, pass.column, pass.leaf, pass.head.largest_cluster,
                              pass.memory.leaf_logit, pass.memory.leaf_part, pass.log_prob});
}

inline void HostDecodeKernels::draw_round(const kernels::device::DrawPass& pass) {
  using kernels::device::kNothing;
  using kernels::device::kUndecided;
  const DecodeHead& head = pass.head;
  for (int32_t draw = 0; draw < pass.draws; ++draw) {
    const auto& request = pass.request[draw];
    auto& drawn = pass.drawn[draw];
    float* log_weight = pass.log_weight + draw * head.root();
    const float log_sum = value_of(root_sum(head, pass.root, request.row));
    const auto root = [&](int64_t column) {
      return score(pass.root.logit[request.row * head.root() + column], log_sum);
    };
    const auto possible = [&](int64_t word_row) {
      return allowed(head, head.word_of_row[word_row]) &&
             (word_row != head.end_row || request.end_allowed != 0);
    };
    if (pass.starts) {
      drawn = {0, kUndecided, 0};
      for (int64_t column = 0; column < head.root(); ++column) {
        const int64_t cluster = column - head.shortlist;
        const int64_t first = cluster < 0 ? column : head.cluster_offsets[cluster];
        const int64_t words = cluster < 0 ? 1 : words_of(head, cluster);
        double weight = pass.power * root(column);
        if (words == 1 && !possible(first)) weight = -INFINITY;
        if (words > 1) weight += std::max(0.0, 1 - pass.power) * std::log(static_cast<double>(words));
        log_weight[column] = static_cast<float>(weight);
      }
    }
    if (drawn.word != kUndecided) continue;
    // An index drawn in proportion to exp(exponents), and the logarithm of their sum.
    const auto pick = [](const std::vector<double>& exponents, double u) {
      const double most = *std::ranges::max_element(exponents);
      double total = 0;
      for (const double e : exponents) total += e > -INFINITY ? std::exp(e - most) : 0;
      double left = u * total;
      std::pair<int64_t, double> result{-1, most > -INFINITY ? most + std::log(total) : -INFINITY};
      for (size_t i = 0; i < exponents.size() && result.second > -INFINITY; ++i) {
        const double weight = std::exp(exponents[i] - most);
        if (!(weight > 0)) continue;
        result.first = static_cast<int64_t>(i);
        if (left < weight) break;
        left -= weight;
      }
      return result;
    };
    const auto proposal = 2 * static_cast<uint64_t>(drawn.proposals++);
    const auto chance = uniforms(request, proposal, pass.key0, pass.key1);
    const int64_t column = pick({log_weight, log_weight + head.root()}, chance.first).first;
    if (column < 0) {
      drawn.word = kNothing;
      drawn.log_prob = root(0);
      continue;
    }
    const int64_t cluster = column - head.shortlist;
    const int64_t first = cluster < 0 ? column : head.cluster_offsets[cluster];
    if (cluster < 0 || words_of(head, cluster) == 1) {
      drawn.word = head.word_of_row[first];
      drawn.log_prob = root(column);
      continue;
    }
    pass.memory.pair[draw] = {0, 0, static_cast<int32_t>(cluster)};
    expand(head, pass.root, pass.memory, draw, request.row);
    const auto leaf_score = [&](int64_t leaf) {
      return score(pass.memory.leaf_logit[draw * head.largest_cluster + leaf],
                   value_of(pass.memory.leaf_part[draw]));
    };
    std::vector<double> exponents;
    for (int64_t leaf = 0; leaf < words_of(head, cluster); ++leaf) {
      exponents.push_back(possible(first + leaf) ? pass.power * leaf_score(leaf) : -INFINITY);
    }
    const auto [leaf, mass] = pick(exponents, uniforms(request, proposal + 1, pass.key0, pass.key1).first);
    const double log_mass = pass.power * root(column) + mass;
    if (!(std::log(chance.second) < log_mass - double{log_weight[column]})) {
      log_weight[column] = static_cast<float>(log_mass);
      const float within = value_of(pass.memory.leaf_part[draw]);
      if (std::isnan(within)) drawn = {double{within}, kNothing, 0};
      continue;
    }
    drawn.word = head.word_of_row[first + leaf];
    drawn.log_prob = root(column) + leaf_score(leaf);
  }
}

}  // namespace hsm::test
