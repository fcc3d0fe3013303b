#pragma once
#include <type_traits>

#include "kernels/device/device_kernels.h"
#include "kernels/device/head_args.h"

namespace hsm::kernels::device {

/// A pass's working memory, cut out of one piece.
template <class P>
struct HeadMemory {
  HeadState<typename P::Sum> state;
  View<int32_t> word_rows;
  View<int64_t> word_row_count;
  int64_t bytes = 0;  ///< of the whole piece
};

/// Cuts `scratch`, aligned to 256 bytes; null to learn how much is needed.
template <class P>
HeadMemory<P> head_memory(const HeadPlan& plan, void* scratch) {
  constexpr int64_t kAlignment = 256;
  HeadMemory<P> memory;
  const auto cut = [&](auto& view, int64_t count) {
    using T = std::remove_reference_t<decltype(*view.p)>;
    if (scratch != nullptr) view = {reinterpret_cast<T*>(static_cast<char*>(scratch) + memory.bytes), count};
    memory.bytes += divide_up<int64_t>(count * static_cast<int64_t>(sizeof(T)), kAlignment) * kAlignment;
  };
  HeadState<typename P::Sum>& state = memory.state;
  for (auto* per_token : {&state.key, &state.order}) cut(*per_token, plan.sizes.tokens);
  for (auto* per_token : {&state.root_target_logit, &state.leaf_target_logit, &state.root_log_sum,
                          &state.leaf_log_sum, &state.loss}) {
    cut(*per_token, plan.sizes.tokens);
  }
  for (auto* prefix :
       {&state.token_start, &state.row_start, &state.leaf_start, &state.tile_start, &state.weight_start}) {
    cut(*prefix, plan.prefix());
  }
  cut(state.workspace, plan.workspace());
  state.counts = {reinterpret_cast<int32_t*>(state.workspace.p), plan.counts()};
  cut(memory.word_rows, plan.most_gradient_rows());
  cut(memory.word_row_count, 1);
  return memory;
}

template <class T>
View<T> view_of(T* values, int64_t count) {
  return {values, count};
}

/// The kernels' arguments for a pass.
template <class P>
HeadArgs<P> head_args(const HeadPlan& plan, const HeadPass& pass) {
  using T = typename P::T;
  const HeadSizes& sizes = plan.sizes;
  const int64_t hidden = sizes.tokens * sizes.dim;
  const int64_t rows = plan.most_gradient_rows();
  const HeadMemory<P> memory = head_memory<P>(plan, pass.scratch);
  HeadArgs<P> args;
  args.plan = plan;
  args.in.hidden = view_of(static_cast<const T*>(pass.hidden), hidden);
  args.in.word = view_of(static_cast<const T*>(pass.word), sizes.words * sizes.dim);
  args.in.cluster = view_of(static_cast<const T*>(pass.cluster), sizes.clusters * sizes.dim);
  args.in.word_bias = view_of(pass.word_bias, sizes.words);
  args.in.cluster_bias = view_of(pass.cluster_bias, sizes.clusters);
  args.in.cluster_offsets = view_of(pass.cluster_offsets, sizes.clusters + 1);
  args.in.cluster_of_row = view_of(pass.cluster_of_row, sizes.words);
  args.in.targets = view_of(pass.targets, sizes.tokens);
  args.in.scale = view_of(pass.scale, 1);
  args.state = memory.state;
  args.out.total_loss = view_of(pass.loss, 1);
  args.out.hidden = view_of(static_cast<T*>(pass.hidden_gradient), hidden);
  args.out.word = view_of(pass.word_gradient, rows * sizes.dim);
  args.out.word_bias = view_of(pass.word_bias_gradient, rows);
  args.out.word_rows = memory.word_rows;
  args.out.word_row_count = memory.word_row_count;
  args.out.cluster = view_of(pass.cluster_gradient, sizes.clusters * sizes.dim);
  args.out.cluster_bias = view_of(pass.cluster_bias_gradient, sizes.clusters);
  return args;
}

}  // namespace hsm::kernels::device
