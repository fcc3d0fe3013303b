#include "model/gradient_sum.h"

#include <algorithm>
#include <cstdint>
#include <utility>

#include "kernels/embedding.h"

namespace hsm {
namespace {

constexpr int64_t kTile = 1 << 14;

// to += from
void add_values(std::span<const float> from, std::span<float> to, ThreadPool& pool) {
  const auto count = static_cast<int64_t>(to.size());
  pool.run((count + kTile - 1) / kTile, [&](int64_t tile, int) {
    for (int64_t i = tile * kTile; i < std::min(count, (tile + 1) * kTile); ++i) {
      to[static_cast<size_t>(i)] += from[static_cast<size_t>(i)];
    }
  });
}

}  // namespace

GradientSum::GradientSum(std::vector<std::span<float>> dense, std::vector<kernels::RowGradients<float>*> rows,
                         ThreadPool& pool)
    : dense_(std::move(dense)),
      rows_(std::move(rows)),
      pool_(pool),
      dense_sums_(dense_.size()),
      row_sums_(rows_.size()) {}

void GradientSum::add() {
  for (size_t i = 0; i < dense_.size(); ++i) {
    if (empty_) {
      dense_sums_[i].assign(dense_[i].begin(), dense_[i].end());
    } else {
      add_values(dense_[i], dense_sums_[i], pool_);
    }
  }
  for (size_t i = 0; i < rows_.size(); ++i) {
    if (empty_) {
      std::swap(row_sums_[i], *rows_[i]);
    } else {
      kernels::merge_rows(row_sums_[i], *rows_[i], merged_, pool_);
      std::swap(row_sums_[i], merged_);
    }
  }
  empty_ = false;
}

void GradientSum::finish() {
  if (empty_) return;
  for (size_t i = 0; i < dense_.size(); ++i) add_values(dense_sums_[i], dense_[i], pool_);
  for (size_t i = 0; i < rows_.size(); ++i) {
    kernels::merge_rows(row_sums_[i], *rows_[i], merged_, pool_);
    std::swap(*rows_[i], merged_);
  }
  empty_ = true;
}

}  // namespace hsm
