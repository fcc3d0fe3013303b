#pragma once
#include <cmath>
#include <ostream>
#include <string>
#include <vector>

#include "base/random.h"
#include "kernels/device/bucket.h"
#include "kernels/device/head_forward.h"
#include "kernels/device/head_gradients.h"
#include "kernels/device/head_merge.h"
#include "kernels/device/head_shapes.h"
#include "reference/head_oracle.h"

namespace hsm::emulation {

namespace device = kernels::device;

/// A batch for the head: ragged clusters, random weights and targets, all drawn from the name's hash.
struct HeadCase {
  std::string name;
  int64_t shortlist = 0;
  std::vector<int64_t> cluster_sizes;
  int64_t dim = 0;
  int64_t tokens = 0;
  double ignored = 0;     ///< share of tokens without loss
  int only_cluster = -1;  ///< all targets lie in this cluster
  double magnitude = 1;   ///< of weights and hidden states

  [[nodiscard]] reference::HeadProblem problem() const;
  friend std::ostream& operator<<(std::ostream& out, const HeadCase& c) { return out << c.name; }
};

/// Kernels of one set of tile sizes.
template <class P, class Root_, class Leaf_, class Backward_, int Threads>
struct HeadKernels {
  using Precision = P;
  using Count = device::CountKeys<P>;
  using Scan = device::ScanKeys<P, Threads>;
  using Scatter = device::ScatterKeys<P>;
  using Root = device::RootForward<P, Root_>;
  using Leaf = device::LeafForward<P, Leaf_>;
  using Merge = device::MergeLoss<P, Threads>;
  using Hidden = device::HiddenGradient<P, Backward_>;
  using Weight = device::WeightGradient<P, Backward_>;
  using Sum = device::SumSplits<P, Threads>;

  static device::HeadTiles tiles() { return device::tiles_of<Root_, Leaf_, Backward_>(); }
};

/// Memory of a pass, poisoned before it, and the answers afterwards. Inputs are rounded to the precision.
template <class P>
class HeadRun {
 public:
  using T = typename P::T;
  using S = typename P::Sum;

  HeadRun(const reference::HeadProblem& problem, const device::HeadTiles& tiles, double scale);

  [[nodiscard]] const device::HeadArgs<P>& args() const { return args_; }
  /// The plan may be cut otherwise before the memory is made: see cut_finely.
  void prepare();
  device::HeadPlan& plan() { return args_.plan; }

  /// The problem as the kernels see it: rounded.
  [[nodiscard]] const reference::HeadProblem& rounded() const { return rounded_; }
  /// Gradients in the oracle's shapes; zero where the compact gradient has no row.
  [[nodiscard]] reference::HeadAnswer answer() const;
  [[nodiscard]] std::vector<int32_t> order() const { return order_; }
  [[nodiscard]] std::vector<int32_t> keys() const { return key_; }
  [[nodiscard]] std::vector<int32_t> word_rows() const {
    return {word_rows_.begin(), word_rows_.begin() + word_row_count_[0]};
  }

 private:
  template <class V>
  static device::View<V> view(std::vector<V>& values) {
    return {values.data(), static_cast<int64_t>(values.size())};
  }
  template <class V>
  static device::View<const V> const_view(const std::vector<V>& values) {
    return {values.data(), static_cast<int64_t>(values.size())};
  }
  template <class V>
  static void poison(std::vector<V>& values, int64_t count) {
    values.resize(static_cast<size_t>(count));
    if (count > 0) std::memset(values.data(), 0xFF, values.size() * sizeof(V));
  }
  std::vector<T> narrow(std::vector<double>& values) {
    std::vector<T> out;
    for (double& value : values) {
      T stored = device::Element<T>::store(static_cast<S>(value));
      if constexpr (std::is_same_v<P, device::Tf32>) stored = device::to_tf32(stored);
      out.push_back(stored);
      value = static_cast<double>(device::Element<T>::load(stored));
    }
    return out;
  }
  std::vector<S> sums(std::vector<double>& values) {
    std::vector<S> out(values.begin(), values.end());
    values.assign(out.begin(), out.end());
    return out;
  }

  reference::HeadProblem rounded_;
  device::HeadArgs<P> args_;
  std::vector<T> hidden_in_, word_in_, cluster_in_, hidden_;
  std::vector<S> word_bias_in_, cluster_bias_in_, scale_, root_logit_, leaf_logit_, root_sum_, leaf_sum_,
      loss_, workspace_, total_, word_, word_bias_, cluster_, cluster_bias_;
  std::vector<int32_t> cluster_of_row_, targets_, key_, order_, word_rows_;
  std::vector<int32_t> prefixes_[5];
  std::vector<int64_t> word_row_count_;
};

inline reference::HeadProblem HeadCase::problem() const {
  reference::HeadProblem p;
  p.shortlist = shortlist;
  p.dim = dim;
  p.cluster_offsets = {shortlist};
  for (const int64_t size : cluster_sizes) p.cluster_offsets.push_back(p.cluster_offsets.back() + size);
  p.words = p.cluster_offsets.back();
  uint64_t stream = 0;
  const CounterRandom random(77, Purpose::sampling);
  const auto draw = [&](int64_t count, double range) {
    std::vector<double> values;
    ++stream;
    for (int64_t i = 0; i < count; ++i) {
      values.push_back(range * (2 * random.uniform(stream, static_cast<uint64_t>(i)) - 1));
    }
    return values;
  };
  p.hidden = draw(tokens * dim, magnitude);
  p.word = draw(p.words * dim, magnitude);
  p.word_bias = draw(p.words, magnitude);
  p.cluster = draw(p.clusters() * dim, magnitude);
  p.cluster_bias = draw(p.clusters(), magnitude);
  for (int64_t i = 0; i < tokens; ++i) {
    const auto token = static_cast<uint64_t>(i);
    if (random.uniform(1000, token) < ignored) {
      p.targets.push_back(-1 - static_cast<int64_t>(random.below(5, 1001, token)));
    } else if (only_cluster >= 0) {
      const auto c = static_cast<size_t>(only_cluster);
      p.targets.push_back(p.cluster_offsets[c] + static_cast<int64_t>(random.below(
                                                     static_cast<uint64_t>(cluster_sizes[c]), 1002, token)));
    } else {
      p.targets.push_back(static_cast<int64_t>(random.below(static_cast<uint64_t>(p.words), 1003, token)));
    }
  }
  return p;
}

template <class P>
HeadRun<P>::HeadRun(const reference::HeadProblem& problem, const device::HeadTiles& tiles, double scale)
    : rounded_(problem), scale_{static_cast<S>(scale)} {
  device::HeadSizes sizes;
  sizes.tokens = static_cast<int64_t>(problem.targets.size());
  sizes.words = problem.words;
  sizes.shortlist = problem.shortlist;
  sizes.clusters = problem.clusters();
  sizes.dim = problem.dim;
  std::vector<int64_t> sizes_of_clusters;
  for (int64_t c = 0; c < problem.clusters(); ++c) {
    sizes_of_clusters.push_back(problem.cluster_offsets[c + 1] - problem.cluster_offsets[c]);
  }
  std::sort(sizes_of_clusters.rbegin(), sizes_of_clusters.rend());
  for (size_t i = 0; i < sizes_of_clusters.size() && static_cast<int64_t>(i) < sizes.tokens; ++i) {
    sizes.most_hit_rows += sizes_of_clusters[i];
  }
  if (!sizes_of_clusters.empty()) sizes.largest_cluster = sizes_of_clusters[0];
  args_.plan = device::plan_head(sizes, tiles);
}

template <class P>
void HeadRun<P>::prepare() {
  const device::HeadPlan& plan = args_.plan;
  const device::HeadSizes& sizes = plan.sizes;
  hidden_in_ = narrow(rounded_.hidden);
  word_in_ = narrow(rounded_.word);
  cluster_in_ = narrow(rounded_.cluster);
  word_bias_in_ = sums(rounded_.word_bias);
  cluster_bias_in_ = sums(rounded_.cluster_bias);
  targets_.assign(rounded_.targets.begin(), rounded_.targets.end());
  cluster_of_row_.assign(static_cast<size_t>(sizes.words), -1);
  for (int64_t c = 0; c < sizes.clusters; ++c) {
    for (int64_t row = rounded_.cluster_offsets[c]; row < rounded_.cluster_offsets[c + 1]; ++row) {
      cluster_of_row_[static_cast<size_t>(row)] = static_cast<int32_t>(c);
    }
  }
  args_.in = {const_view(hidden_in_),      const_view(word_in_),         const_view(cluster_in_),
              const_view(word_bias_in_),   const_view(cluster_bias_in_), const_view(rounded_.cluster_offsets),
              const_view(cluster_of_row_), const_view(targets_),         const_view(scale_)};

  for (auto* per_token : {&root_logit_, &leaf_logit_, &root_sum_, &leaf_sum_, &loss_})
    poison(*per_token, sizes.tokens);
  poison(key_, sizes.tokens);
  poison(order_, sizes.tokens);
  for (auto& prefix : prefixes_) poison(prefix, plan.prefix());
  poison(workspace_, plan.workspace());  // the counts lie in it
  args_.state = {
      view(key_),         view(order_),
      view(root_logit_),  view(leaf_logit_),
      view(root_sum_),    view(leaf_sum_),
      view(loss_),        device::View<int32_t>{reinterpret_cast<int32_t*>(workspace_.data()), plan.counts()},
      view(prefixes_[0]), view(prefixes_[1]),
      view(prefixes_[2]), view(prefixes_[3]),
      view(prefixes_[4]), view(workspace_)};

  const int64_t rows = plan.most_gradient_rows();
  poison(total_, 1);
  poison(hidden_, sizes.tokens * sizes.dim);
  poison(word_, rows * sizes.dim);
  poison(word_bias_, rows);
  poison(word_rows_, rows);
  poison(word_row_count_, 1);
  poison(cluster_, sizes.clusters * sizes.dim);
  poison(cluster_bias_, sizes.clusters);
  args_.out = {view(total_),     view(hidden_),         view(word_),    view(word_bias_),
               view(word_rows_), view(word_row_count_), view(cluster_), view(cluster_bias_)};
}

template <class P>
reference::HeadAnswer HeadRun<P>::answer() const {
  const device::HeadSizes& sizes = args_.plan.sizes;
  reference::HeadAnswer answer;
  answer.loss = static_cast<double>(total_[0]);
  for (const T value : hidden_) answer.hidden.push_back(static_cast<double>(device::Element<T>::load(value)));
  answer.word.assign(static_cast<size_t>(sizes.words * sizes.dim), 0);
  answer.word_bias.assign(static_cast<size_t>(sizes.words), 0);
  for (int64_t i = 0; i < word_row_count_[0]; ++i) {
    const auto row = static_cast<size_t>(word_rows_.at(static_cast<size_t>(i)));
    answer.word_bias.at(row) = static_cast<double>(word_bias_[static_cast<size_t>(i)]);
    for (int64_t d = 0; d < sizes.dim; ++d) {
      answer.word.at(row * static_cast<size_t>(sizes.dim) + static_cast<size_t>(d)) =
          static_cast<double>(word_[static_cast<size_t>(i * sizes.dim + d)]);
    }
  }
  answer.cluster.assign(cluster_.begin(), cluster_.end());
  answer.cluster_bias.assign(cluster_bias_.begin(), cluster_bias_.end());
  return answer;
}

}  // namespace hsm::emulation
