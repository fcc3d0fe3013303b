#pragma once
#include <cmath>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/device/host_launch.h"
#include "kernels/device/index_kernels.h"
#include "kernels/head.h"

namespace hsm::test {

/// The device's kernels in host memory: the same bodies, and the CPU's head on what 16-bit elements hold.
class HostKernels final : public kernels::device::IndexKernels<HostLaunch> {
 public:
  explicit HostKernels(kernels::device::ElementType type, uint32_t seed = 1)
      : IndexKernels(HostLaunch(seed), type) {}

  [[nodiscard]] int64_t head_scratch_bytes(const kernels::device::HeadSizes&) const override { return 0; }

  void head_scores(const kernels::device::HeadPass& pass, float* root, float* leaf) override {
    with_element([&](auto element) { score<decltype(element)>(pass, root, leaf); });
  }

  void head(const kernels::device::HeadPass& pass) override {
    with_element([&](auto element) { run_head<decltype(element)>(pass); });
  }

 private:
  template <class T>
  static std::vector<float> loaded(const void* values, int64_t count) {
    std::vector<float> result;
    for (int64_t i = 0; i < count; ++i) {
      result.push_back(kernels::device::Element<T>::load(static_cast<const T*>(values)[i]));
    }
    return result;
  }

  /// Straight from the formula, in double.
  template <class T>
  static void score(const kernels::device::HeadPass& pass, float* root, float* leaf) {
    const auto& sizes = pass.sizes;
    const std::vector<float> hidden = loaded<T>(pass.hidden, sizes.tokens * sizes.dim);
    const std::vector<float> word = loaded<T>(pass.word, sizes.words * sizes.dim);
    const std::vector<float> cluster = loaded<T>(pass.cluster, sizes.clusters * sizes.dim);
    for (int64_t token = 0; token < sizes.tokens; ++token) {
      root[token] = leaf[token] = 0;
      const int32_t target = pass.targets[token];
      if (target < 0) continue;
      const auto logit = [&](const std::vector<float>& rows, const float* bias, int64_t row) {
        double sum = bias[row];
        for (int64_t d = 0; d < sizes.dim; ++d) {
          sum += double{hidden[static_cast<size_t>(token * sizes.dim + d)]} *
                 rows[static_cast<size_t>(row * sizes.dim + d)];
        }
        return sum;
      };
      const int32_t c = target < sizes.shortlist ? -1 : pass.cluster_of_row[target];
      double sum = 0;
      for (int64_t row = 0; row < sizes.shortlist; ++row) sum += std::exp(logit(word, pass.word_bias, row));
      for (int64_t k = 0; k < sizes.clusters; ++k) sum += std::exp(logit(cluster, pass.cluster_bias, k));
      const double hit = c < 0 ? logit(word, pass.word_bias, target) : logit(cluster, pass.cluster_bias, c);
      root[token] = static_cast<float>(hit - std::log(sum));
      if (c < 0) continue;
      double leaves = 0;
      for (int64_t row = pass.cluster_offsets[c]; row < pass.cluster_offsets[c + 1]; ++row) {
        leaves += std::exp(logit(word, pass.word_bias, row));
      }
      leaf[token] = static_cast<float>(logit(word, pass.word_bias, target) - std::log(leaves));
    }
  }

  template <class T>
  void run_head(const kernels::device::HeadPass& pass) {
    const auto& sizes = pass.sizes;
    const std::vector<float> hidden = loaded<T>(pass.hidden, sizes.tokens * sizes.dim);
    const std::vector<float> word = loaded<T>(pass.word, sizes.words * sizes.dim);
    const std::vector<float> cluster = loaded<T>(pass.cluster, sizes.clusters * sizes.dim);
    const std::vector<int64_t> targets(pass.targets, pass.targets + sizes.tokens);
    const kernels::HeadShape shape{sizes.words,
                                   sizes.shortlist,
                                   sizes.dim,
                                   {pass.cluster_offsets, static_cast<size_t>(sizes.clusters + 1)},
                                   {pass.cluster_of_row, static_cast<size_t>(sizes.words)}};
    std::vector<float> hidden_gradient(hidden.size());
    kernels::RowGradients<float> rows;
    const kernels::HeadGradients<float> gradients{hidden_gradient.data(), &rows, pass.cluster_gradient,
                                                  pass.cluster_bias_gradient};
    *pass.loss = static_cast<float>(
        kernels::head_loss<float>(shape, {word.data(), pass.word_bias, cluster.data(), pass.cluster_bias},
                                  hidden.data(), targets, *pass.scale, &gradients, workspace_, pool_));
    for (size_t i = 0; i < hidden_gradient.size(); ++i) {
      static_cast<T*>(pass.hidden_gradient)[i] = kernels::device::Element<T>::store(hidden_gradient[i]);
    }
    for (size_t row = 0; row < rows.rows.size(); ++row) {
      const float* from = rows.values.data() + static_cast<int64_t>(row) * rows.width;
      std::copy_n(from, sizes.dim, pass.word_gradient + static_cast<int64_t>(row) * sizes.dim);
      pass.word_bias_gradient[row] = from[sizes.dim];
    }
  }

  ThreadPool pool_{1};
  kernels::HeadWorkspace<float> workspace_;
};

}  // namespace hsm::test
