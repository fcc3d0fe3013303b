#pragma once
#include "kernels/device/head_plan.h"

namespace hsm::kernels::device {

/// Weights and inputs of a pass of the head, on the device. P: one of the precisions of context.h.
template <class P>
struct HeadInputs {
  View<const typename P::T> hidden;          ///< [N, D]
  View<const typename P::T> word;            ///< [V, D]
  View<const typename P::T> cluster;         ///< [C, D]
  View<const typename P::Sum> word_bias;     ///< [V]
  View<const typename P::Sum> cluster_bias;  ///< [C]
  View<const int64_t> cluster_offsets;       ///< [C + 1], rows of the word matrix
  View<const int32_t> cluster_of_row;        ///< [V], negative for the shortlist
  View<const int32_t> targets;               ///< [N], rows; negative: no loss
  View<const typename P::Sum> scale;         ///< [1]: gradients are those of scale · Σ losses
};

/// What a pass keeps from one kernel to the next: all it stores of a token. A token's key is its target's
/// cluster, or C when there is nothing to do at level two: a word of the shortlist, a cluster of one word, no
/// loss.
template <class S>
struct HeadState {
  View<int32_t> key;          ///< [N]
  View<int32_t> order;        ///< [N]: tokens, stably sorted by key
  View<S> root_target_logit;  ///< [N]
  View<S> leaf_target_logit;  ///< [N]
  View<S> root_log_sum;       ///< [N]: log Σ exp of the root's logits
  View<S> leaf_log_sum;       ///< [N]
  View<S> loss;               ///< [N]

  View<int32_t> counts;  ///< [pieces][C + 1]: then each piece's first place for a key
  // Prefixes over the keys, C + 2 entries each, the last for the end:
  View<int32_t> token_start;   ///< first place in `order`
  View<int32_t> row_start;     ///< first row in the compact gradient, after the shortlist's
  View<int32_t> leaf_start;    ///< first item of the leaves' forward pass
  View<int32_t> tile_start;    ///< first of dH's tiles of the key's bin
  View<int32_t> weight_start;  ///< first item of dW
  View<S> workspace;
};

/// After the forward pass: log-probabilities of a token's target, at the root and within its cluster; 0 where
/// there is nothing to score. An index a token.
template <class S>
struct TokenScores {
  HeadState<S> state;
  View<const int32_t> targets;
  int64_t clusters;
  S* root;
  S* leaf;

  HSM_HOST_DEVICE void operator()(int64_t token) const {
    const bool scored = targets.p[token] >= 0;
    const bool has_leaf = scored && state.key.p[token] < clusters;
    root[token] = scored ? state.root_target_logit.p[token] - state.root_log_sum.p[token] : S{0};
    leaf[token] = has_leaf ? state.leaf_target_logit.p[token] - state.leaf_log_sum.p[token] : S{0};
  }
};

/// Gradients. The word matrix's is compact: the shortlist's K rows, then those of the hit clusters.
template <class P>
struct HeadOutputs {
  View<typename P::Sum> total_loss;    ///< [1]
  View<typename P::T> hidden;          ///< [N, D]
  View<typename P::Sum> word;          ///< [most_gradient_rows, D]
  View<typename P::Sum> word_bias;     ///< [most_gradient_rows]
  View<int32_t> word_rows;             ///< [most_gradient_rows]: row of the word matrix
  View<int64_t> word_row_count;        ///< [1]
  View<typename P::Sum> cluster;       ///< [C, D]
  View<typename P::Sum> cluster_bias;  ///< [C]
};

/// Arguments of every kernel of the head.
template <class P>
struct HeadArgs {
  HeadPlan plan;
  HeadInputs<P> in;
  HeadState<typename P::Sum> state;
  HeadOutputs<P> out;
};

}  // namespace hsm::kernels::device
