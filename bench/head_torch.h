#pragma once
#include <torch/nn/modules/adaptive.h>

#include "head_problem.h"

namespace hsm::bench {

// The head in other ways, composed of LibTorch's operations. Each pass is forward and backward to hidden
// states and weights; its loss is the mean.

struct TorchInputs {
  TorchInputs(const HeadProblem& problem, const at::TensorOptions& options)
      : hidden(at::randn({problem.tokens, problem.dim}, options).mul_(0.1).set_requires_grad(true)),
        targets(at::tensor(problem.targets(), at::kLong).to(options.device())) {}
  at::Tensor hidden;
  at::Tensor targets;
};

inline at::Tensor parameter(at::IntArrayRef sizes, const at::TensorOptions& options) {
  return at::randn(sizes, options).mul_(0.05).set_requires_grad(true);
}

/// A softmax over all words.
class FullSoftmax {
 public:
  FullSoftmax(const HeadProblem& problem, const at::TensorOptions& options)
      : in_(problem, options),
        weight_(parameter({problem.words, problem.dim}, options)),
        bias_(parameter({problem.words}, options)) {}
  void pass() {
    const at::Tensor logits = at::addmm(bias_, in_.hidden, weight_.t());
    torch::autograd::grad({at::cross_entropy_loss(logits, in_.targets)}, {in_.hidden, weight_, bias_});
  }

 private:
  TorchInputs in_;
  at::Tensor weight_, bias_;
};

/// torch::nn::AdaptiveLogSoftmaxWithLoss, cut at 2,000 and 10,000 words as far as there are so many.
class AdaptiveSoftmax {
 public:
  AdaptiveSoftmax(const HeadProblem& problem, const at::TensorOptions& options) : in_(problem, options) {
    std::vector<int64_t> cutoffs;
    for (const int64_t cutoff : {2000, 10000}) {
      if (cutoff < problem.words) cutoffs.push_back(cutoff);
    }
    module_ = torch::nn::AdaptiveLogSoftmaxWithLoss(
        torch::nn::AdaptiveLogSoftmaxWithLossOptions(problem.dim, problem.words, cutoffs).div_value(1));
    module_->to(options.device(), options.dtype().toScalarType());
  }
  void pass() {
    std::vector<at::Tensor> inputs = module_->parameters();
    inputs.push_back(in_.hidden);
    const at::Tensor log_probs = module_->forward(in_.hidden, in_.targets).output;
    torch::autograd::grad({-log_probs.mean()}, inputs);
  }

 private:
  TorchInputs in_;
  torch::nn::AdaptiveLogSoftmaxWithLoss module_{nullptr};
};

/// Two levels, the second a padded tensor [C, D, M] of which each token gathers its cluster's slice.
class GatherSoftmax {
 public:
  GatherSoftmax(const HeadProblem& problem, const at::TensorOptions& options)
      : in_(problem, options),
        root_(parameter({problem.shortlist + problem.clusters, problem.dim}, options)),
        leaves_(parameter({problem.clusters, problem.dim, problem.cluster_rows()}, options)) {
    const at::Tensor leaf = at::clamp_min(in_.targets - problem.shortlist, 0);
    cluster_ = leaf.div(problem.cluster_rows(), "floor");
    place_ = leaf.remainder(problem.cluster_rows());
    in_leaf_ = in_.targets >= problem.shortlist;
    root_target_ = at::where(in_leaf_, cluster_ + problem.shortlist, in_.targets);
  }
  void pass() {
    const at::Tensor root = at::mm(in_.hidden, root_.t());
    const at::Tensor slices = at::index_select(leaves_, 0, cluster_);
    const at::Tensor leaf = at::bmm(in_.hidden.unsqueeze(1), slices).squeeze(1);
    const at::Tensor lost = at::cross_entropy_loss(leaf, place_, {}, at::Reduction::None);
    const at::Tensor loss = at::cross_entropy_loss(root, root_target_) + (lost * in_leaf_).mean();
    torch::autograd::grad({loss}, {in_.hidden, root_, leaves_});
  }

 private:
  TorchInputs in_;
  at::Tensor root_, leaves_;
  at::Tensor cluster_, place_, in_leaf_, root_target_;
};

}  // namespace hsm::bench
