#include "eval/head_block.h"

#include <algorithm>
#include <string>

#include "base/error.h"

namespace hsm {
namespace {

constexpr int64_t kInputFloats = int64_t{1} << 20;  // head inputs a block holds
constexpr int64_t kLogProbFloats = int64_t{1}
                                   << 16;  // log-probabilities a task has in hand: they stay in cache
constexpr int64_t kMinRows = 64;
constexpr int64_t kMaxRows = 512;
constexpr int64_t kMaxTileRows = 64;

/// Rows of `width` log-probabilities that a task takes at a time.
int64_t tile_rows(int64_t width) {
  return std::clamp<int64_t>(kLogProbFloats / width, 1, kMaxTileRows);
}

float* reserve(std::vector<float>& buffer, int64_t floats) {
  if (buffer.size() < static_cast<size_t>(floats)) buffer.resize(static_cast<size_t>(floats));
  return buffer.data();
}

}  // namespace

HeadBlock::HeadBlock(const InferenceModel& model)
    : model_(&model),
      dim_(model.shape().head_dim()),
      root_size_(model.layout().shortlist() + model.layout().clusters()),
      tile_rows_(tile_rows(root_size_)),
      capacity_(std::clamp(kInputFloats / dim_, kMinRows, kMaxRows)),
      inputs_(static_cast<size_t>(capacity_ * dim_)) {
  targets_.reserve(static_cast<size_t>(capacity_));
}

int64_t HeadBlock::cluster_size(int64_t cluster) const {
  const auto& offsets = model_->layout().cluster_offsets;
  return offsets[static_cast<size_t>(cluster) + 1] - offsets[static_cast<size_t>(cluster)];
}

void HeadBlock::add(int32_t target, TokenScore* score) {
  const HeadLayout& layout = model_->layout();
  if (target < 0 || target >= layout.words()) {
    throw DataError("word id " + std::to_string(target) + ", but the model has " +
                    std::to_string(layout.words()) + " words");
  }
  const int64_t row = layout.row_of_word[static_cast<size_t>(target)];
  const int32_t cluster = layout.cluster_of_row[static_cast<size_t>(row)];
  *score = TokenScore{};
  if (cluster == kShortlist) {
    targets_.push_back({static_cast<int32_t>(row), kShortlist, 0, score});
  } else {
    const int64_t first = layout.cluster_offsets[static_cast<size_t>(cluster)];
    targets_.push_back({static_cast<int32_t>(layout.shortlist()) + cluster, cluster, row - first, score});
  }
}

void HeadBlock::plan() {
  root_tiles_ = (size() + tile_rows_ - 1) / tile_rows_;
  order_.clear();
  leaf_tasks_.clear();
  for (int32_t row = 0; row < size(); ++row) {
    const int32_t cluster = targets_[static_cast<size_t>(row)].cluster;
    // A word alone in its cluster has probability 1 there.
    if (cluster != kShortlist && cluster_size(cluster) > 1) order_.push_back(row);
  }
  const auto cluster_at = [this](int64_t place) {
    return targets_[static_cast<size_t>(order_[static_cast<size_t>(place)])].cluster;
  };
  std::stable_sort(order_.begin(), order_.end(), [this](int32_t a, int32_t b) {
    return targets_[static_cast<size_t>(a)].cluster < targets_[static_cast<size_t>(b)].cluster;
  });
  const auto count = static_cast<int64_t>(order_.size());
  for (int64_t first = 0, last = 0; first < count; first = last) {
    const int32_t cluster = cluster_at(first);
    const int64_t limit = std::min(count, first + tile_rows(cluster_size(cluster)));
    last = first + 1;
    while (last < limit && cluster_at(last) == cluster) ++last;
    leaf_tasks_.push_back({first, last});
  }
}

void HeadBlock::run(int64_t task, Scratch& scratch) const {
  if (task < root_tiles_) {
    score_root(task, scratch);
  } else {
    score_leaves(leaf_tasks_[static_cast<size_t>(task - root_tiles_)], scratch);
  }
}

void HeadBlock::score_root(int64_t tile, Scratch& scratch) const {
  const int64_t first = tile * tile_rows_;
  const int64_t rows = std::min(tile_rows_, size() - first);
  float* log_probs = reserve(scratch.log_probs, rows * root_size_);
  model_->root_log_probs(input(first), rows, log_probs);
  for (int64_t row = 0; row < rows; ++row) {
    const Target& target = targets_[static_cast<size_t>(first + row)];
    target.score->root = log_probs[row * root_size_ + target.column];
  }
}

void HeadBlock::score_leaves(const LeafTask& task, Scratch& scratch) const {
  const std::span rows =
      std::span(order_).subspan(static_cast<size_t>(task.first), static_cast<size_t>(task.last - task.first));
  const int32_t cluster = targets_[static_cast<size_t>(rows.front())].cluster;
  const int64_t width = cluster_size(cluster);
  float* log_probs = reserve(scratch.log_probs, static_cast<int64_t>(rows.size()) * width);
  scratch.inputs.clear();
  for (const int32_t row : rows) scratch.inputs.push_back(input(row));
  model_->leaf_log_probs(cluster, scratch.inputs, log_probs);
  for (const int32_t row : rows) {
    const Target& target = targets_[static_cast<size_t>(row)];
    target.score->leaf = log_probs[target.leaf];
    log_probs += width;
  }
}

void HeadBlock::clear() noexcept {
  targets_.clear();
  order_.clear();
  leaf_tasks_.clear();
  root_tiles_ = 0;
}

}  // namespace hsm
