#pragma once
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "kernels/row_gradients.h"

namespace hsm {

/// Adds up gradients that are computed piece by piece into the same places, in the order of the pieces.
class GradientSum {
 public:
  /// The places: dense gradients, and sparse ones, of which a piece may hold other rows than the one before.
  /// They and `pool` outlive the object.
  GradientSum(std::vector<std::span<float>> dense, std::vector<kernels::RowGradients<float>*> rows,
              ThreadPool& pool);

  /// Takes a piece in.
  void add();
  /// Takes the last piece in, leaves the sum in the gradients' places and starts anew.
  void finish();

 private:
  std::vector<std::span<float>> dense_;
  std::vector<kernels::RowGradients<float>*> rows_;
  ThreadPool& pool_;
  bool empty_ = true;
  std::vector<std::vector<float>> dense_sums_;
  std::vector<kernels::RowGradients<float>> row_sums_;
  kernels::RowGradients<float> merged_;
};

}  // namespace hsm
