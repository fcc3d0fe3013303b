#include "kernels/head.h"

#include <algorithm>
#include <cstring>
#include <numeric>
#include <utility>

#include "kernels/head_plan.h"
#include "kernels/softmax_group.h"

namespace hsm::kernels {

template <class T>
struct HeadWorkspace<T>::Buffers {
  HeadPlan plan;
  std::vector<T> hidden;           ///< [tokens, D], in the plan's order
  std::vector<T> hidden_gradient;  ///< the same
  std::vector<double> losses;
  GroupBuffers<T> group;
  std::vector<SoftmaxGroup<T>> small;  ///< clusters that one thread works through, largest first
  std::vector<SoftmaxGroup<T>> large;
  std::vector<T> small_logits;  ///< a part for each thread
};

template <class T>
HeadWorkspace<T>::HeadWorkspace() : buffers_(std::make_unique<Buffers>()) {}
template <class T>
HeadWorkspace<T>::~HeadWorkspace() = default;
template <class T>
HeadWorkspace<T>::HeadWorkspace(HeadWorkspace&&) noexcept = default;
template <class T>
HeadWorkspace<T>& HeadWorkspace<T>::operator=(HeadWorkspace&&) noexcept = default;

template <class T>
uint64_t HeadWorkspace<T>::bytes() const noexcept {
  const Buffers& b = *buffers_;
  const auto size = [](const auto& vector) { return vector.capacity() * sizeof(vector[0]); };
  return size(b.plan.tokens) + size(b.plan.root_column) + size(b.plan.leaf_column) + size(b.plan.hits) +
         size(b.plan.places) + size(b.hidden) + size(b.hidden_gradient) + size(b.losses) + b.group.bytes() +
         size(b.small) + size(b.large) + size(b.small_logits);
}

namespace {

// Multiply-adds of a forward pass from which on a cluster is shared by all threads.
constexpr int64_t kLargeWork = int64_t{1} << 25;
constexpr int64_t kCopyTokens = 64;

template <class T>
void resize_row_gradients(const HeadShape& shape, const HeadPlan& plan, RowGradients<T>& gradients) {
  gradients.width = shape.dim + 1;
  gradients.rows.resize(static_cast<size_t>(plan.gradient_rows));
  gradients.values.resize(static_cast<size_t>(plan.gradient_rows * gradients.width));
  auto at = gradients.rows.begin() + shape.shortlist;
  std::iota(gradients.rows.begin(), at, int64_t{0});
  for (const HitCluster& hit : plan.hits) {
    if (hit.factored) continue;
    const auto c = static_cast<size_t>(hit.cluster);
    const int64_t size = shape.cluster_offsets[c + 1] - shape.cluster_offsets[c];
    std::iota(at, at + size, shape.cluster_offsets[c]);
    at += size;
  }
}

/// Rows `first` on of the word matrix; `gradient_row` is the first one's place among the rows with
/// gradients, negative when it has none.
template <class T>
SoftmaxSegment<T> word_segment(const HeadWeights<T>& weights, int64_t dim, int64_t first, int64_t rows,
                               const HeadGradients<T>* gradients, int64_t gradient_row) {
  SoftmaxSegment<T> segment{
      .weights = weights.word + first * dim, .bias = weights.word_bias + first, .rows = rows};
  if (gradients != nullptr && gradient_row >= 0) {
    segment.gradient = gradients->word->values.data() + gradient_row * (dim + 1);
    segment.gradient_stride = dim + 1;
    segment.bias_gradient = segment.gradient + dim;
    segment.bias_stride = dim + 1;
  }
  return segment;
}

template <class T>
void sort_by_work(std::vector<SoftmaxGroup<T>>& groups) {
  std::stable_sort(groups.begin(), groups.end(),
                   [](const auto& a, const auto& b) { return a.work() > b.work(); });
}

/// Body(first, last) for pieces of the tokens, on the pool.
template <class Body>
void for_token_pieces(int64_t tokens, ThreadPool& pool, Body body) {
  pool.run((tokens + kCopyTokens - 1) / kCopyTokens,
           [&](int64_t item, int) { body(item * kCopyTokens, std::min(tokens, (item + 1) * kCopyTokens)); });
}

/// What one call works on, with the buffers at the sizes it needs.
template <class T, class Buffers>
struct Pass {
  const HeadShape& shape;
  const HeadWeights<T>& weights;
  T scale;
  const HeadGradients<T>* gradients;
  Buffers& buffers;
  ThreadPool& pool;

  [[nodiscard]] int64_t tokens() const { return static_cast<int64_t>(buffers.plan.tokens.size()); }

  void gather_hidden(const T* hidden) {
    const auto values = static_cast<size_t>(tokens() * shape.dim);
    if (buffers.hidden.size() < values) buffers.hidden.resize(values);
    if (gradients != nullptr && buffers.hidden_gradient.size() < values)
      buffers.hidden_gradient.resize(values);
    for_token_pieces(tokens(), pool, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        std::copy_n(hidden + buffers.plan.tokens[static_cast<size_t>(i)] * shape.dim, shape.dim,
                    buffers.hidden.data() + i * shape.dim);
      }
    });
  }

  void scatter_hidden_gradient(int64_t all_tokens) {
    const std::vector<int64_t>& order = buffers.plan.tokens;
    if (tokens() < all_tokens) std::fill_n(gradients->hidden, all_tokens * shape.dim, T{0});
    for_token_pieces(tokens(), pool, [&](int64_t first, int64_t last) {
      for (int64_t i = first; i < last; ++i) {
        std::copy_n(buffers.hidden_gradient.data() + i * shape.dim, shape.dim,
                    gradients->hidden + order[static_cast<size_t>(i)] * shape.dim);
      }
    });
  }

  SoftmaxGroup<T> group(int64_t first, int64_t count, const std::vector<int64_t>& columns) {
    return {.tokens = count,
            .dim = shape.dim,
            .hidden = buffers.hidden.data() + first * shape.dim,
            .column = columns.data() + first,
            .losses = buffers.losses.data() + first,
            .hidden_gradient =
                gradients == nullptr ? nullptr : buffers.hidden_gradient.data() + first * shape.dim,
            .scale = scale};
  }

  void run_root() {
    SoftmaxGroup<T> root = group(0, tokens(), buffers.plan.root_column);
    root.segments[0] = word_segment(weights, shape.dim, 0, shape.shortlist, gradients, 0);
    root.segments[1] = {.weights = weights.cluster, .bias = weights.cluster_bias, .rows = shape.clusters()};
    if (gradients != nullptr) {
      root.segments[1].gradient = gradients->cluster;
      root.segments[1].gradient_stride = shape.dim;
      root.segments[1].bias_gradient = gradients->cluster_bias;
      root.segments[1].bias_stride = 1;
    }
    run_group(root, buffers.group, pool);
  }

  SoftmaxGroup<T> leaves_of(const HitCluster& hit) {
    const auto c = static_cast<size_t>(hit.cluster);
    const int64_t first = shape.cluster_offsets[c];
    SoftmaxGroup<T> leaves = group(hit.first_token, hit.tokens, buffers.plan.leaf_column);
    leaves.adds = true;
    leaves.segments[0] = word_segment(weights, shape.dim, first, shape.cluster_offsets[c + 1] - first,
                                      gradients, hit.factored ? -1 : hit.gradient_row);
    return leaves;
  }

  void run_leaves() {
    buffers.small.clear();
    buffers.large.clear();
    int64_t scratch = 0;
    for (const HitCluster& hit : buffers.plan.hits) {
      if (hit.factored) continue;
      const SoftmaxGroup<T> leaves = leaves_of(hit);
      if (leaves.work() >= kLargeWork) {
        buffers.large.push_back(leaves);
      } else {
        buffers.small.push_back(leaves);
        scratch = std::max(scratch, small_group_scratch(leaves));
      }
    }
    for (const SoftmaxGroup<T>& leaves : buffers.large) run_group(leaves, buffers.group, pool);
    sort_by_work(buffers.small);
    const auto all = static_cast<size_t>(scratch * pool.threads());
    if (buffers.small_logits.size() < all) buffers.small_logits.resize(all);
    pool.run(static_cast<int64_t>(buffers.small.size()), [&](int64_t item, int worker) {
      run_small_group(buffers.small[static_cast<size_t>(item)],
                      buffers.small_logits.data() + worker * scratch);
    });
  }

  void run_factored_leaves() {
    LeafFactors<T>& factors = *gradients->leaves;
    factors.dim = shape.dim;
    factors.clusters.clear();
    buffers.small.clear();
    for (const HitCluster& hit : buffers.plan.hits) {
      if (hit.factored) buffers.small.push_back(leaves_of(hit));
    }
    sort_by_work(buffers.small);
    int64_t size = 0;
    for (const SoftmaxGroup<T>& leaves : buffers.small) {
      factors.clusters.push_back({.first_row = (leaves.segments[0].weights - weights.word) / shape.dim,
                                  .rows = leaves.columns(),
                                  .tokens = leaves.tokens,
                                  .stride = error_stride(leaves),
                                  .hidden = leaves.hidden});
      size += leaves.tokens * error_stride(leaves);
    }
    if (static_cast<int64_t>(factors.errors.size()) < size) factors.errors.resize(static_cast<size_t>(size));
    T* errors = factors.errors.data();
    for (FactoredCluster<T>& cluster : factors.clusters)
      cluster.errors = std::exchange(errors, errors + cluster.tokens * cluster.stride);
    pool.run(static_cast<int64_t>(buffers.small.size()), [&](int64_t item, int) {
      run_factored_group(buffers.small[static_cast<size_t>(item)],
                         factors.clusters[static_cast<size_t>(item)].errors);
    });
  }
};

/// Without a single target there is no loss and no gradient.
template <class T>
void clear_gradients(const HeadShape& shape, int64_t tokens, const HeadGradients<T>& gradients) {
  std::fill_n(gradients.hidden, tokens * shape.dim, T{0});
  std::fill(gradients.word->values.begin(), gradients.word->values.end(), T{0});
  std::fill_n(gradients.cluster, shape.clusters() * shape.dim, T{0});
  std::fill_n(gradients.cluster_bias, shape.clusters(), T{0});
  if (gradients.leaves != nullptr) gradients.leaves->clusters.clear();
}

}  // namespace

template <class T>
double head_loss(const HeadShape& shape, const HeadWeights<T>& weights, const T* hidden,
                 std::span<const int64_t> targets, T scale, const HeadGradients<T>* gradients,
                 HeadWorkspace<T>& workspace, ThreadPool& pool) {
  auto& buffers = workspace.buffers();
  buffers.plan.make(shape, targets, gradients != nullptr && gradients->leaves != nullptr);
  if (gradients != nullptr) resize_row_gradients(shape, buffers.plan, *gradients->word);
  const auto all_tokens = static_cast<int64_t>(targets.size());
  Pass<T, std::remove_reference_t<decltype(buffers)>> pass{shape, weights, scale, gradients, buffers, pool};
  if (pass.tokens() == 0) {
    if (gradients != nullptr) clear_gradients(shape, all_tokens, *gradients);
    return 0;
  }
  buffers.losses.assign(buffers.plan.tokens.size(), 0.0);
  pass.gather_hidden(hidden);
  pass.run_root();
  pass.run_leaves();
  if (gradients != nullptr && gradients->leaves != nullptr) pass.run_factored_leaves();
  if (gradients != nullptr) pass.scatter_hidden_gradient(all_tokens);
  return std::accumulate(buffers.losses.begin(), buffers.losses.end(), 0.0);
}

template class HeadWorkspace<float>;
template class HeadWorkspace<double>;
template double head_loss(const HeadShape&, const HeadWeights<float>&, const float*, std::span<const int64_t>,
                          float, const HeadGradients<float>*, HeadWorkspace<float>&, ThreadPool&);
template double head_loss(const HeadShape&, const HeadWeights<double>&, const double*,
                          std::span<const int64_t>, double, const HeadGradients<double>*,
                          HeadWorkspace<double>&, ThreadPool&);

}  // namespace hsm::kernels
