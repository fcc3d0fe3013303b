#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "eval/token_score.h"
#include "model/inference_model.h"

namespace hsm {

/// Head inputs of up to capacity() predictions and the words to be predicted from them, scored in tasks that
/// may run in any order and on any thread: tiles of rows at the root, then each cluster with all the rows
/// whose target lies in it, so that its words are read once a block. Only the target's cluster is expanded.
class HeadBlock {
 public:
  /// `model` must outlive the block.
  explicit HeadBlock(const InferenceModel& model);

  [[nodiscard]] int64_t capacity() const noexcept { return capacity_; }
  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(targets_.size()); }
  [[nodiscard]] int64_t room() const noexcept { return capacity_ - size(); }

  /// One row: its target (public id) and where its score goes. Its head input may come later. DataError for a
  /// target that is not in the vocabulary.
  void add(int32_t target, TokenScore* score);
  /// Where the head inputs of row `row` and those after it belong, head_dim floats each.
  [[nodiscard]] float* input(int64_t row) noexcept { return inputs_.data() + row * dim_; }

  /// Sorts the rows by cluster; to be called once all rows are added.
  void plan();
  [[nodiscard]] int64_t tasks() const noexcept {
    return root_tiles_ + static_cast<int64_t>(leaf_tasks_.size());
  }
  /// Scratch of one thread.
  struct Scratch {
    std::vector<float> log_probs;
    std::vector<const float*> inputs;
  };
  /// Once all head inputs are there.
  void run(int64_t task, Scratch& scratch) const;

  void clear() noexcept;

 private:
  struct Target {
    int32_t column = 0;   ///< at the root
    int32_t cluster = 0;  ///< kShortlist when the root says all
    int64_t leaf = 0;     ///< within the cluster
    TokenScore* score = nullptr;
  };
  /// Rows order_[first, last), all of one cluster.
  struct LeafTask {
    int64_t first = 0;
    int64_t last = 0;
  };

  void score_root(int64_t tile, Scratch& scratch) const;
  void score_leaves(const LeafTask& task, Scratch& scratch) const;
  [[nodiscard]] int64_t cluster_size(int64_t cluster) const;
  [[nodiscard]] const float* input(int64_t row) const { return inputs_.data() + row * dim_; }

  const InferenceModel* model_;
  int64_t dim_;
  int64_t root_size_;
  int64_t tile_rows_;
  int64_t capacity_;
  int64_t root_tiles_ = 0;
  std::vector<float> inputs_;
  std::vector<Target> targets_;
  std::vector<int32_t> order_;  ///< rows with a leaf, by cluster, then by row
  std::vector<LeafTask> leaf_tasks_;
};

}  // namespace hsm
