#pragma once
#include <cstdint>
#include <span>

#include "base/thread_pool.h"
#include "kernels/row_gradients.h"
#include "kernels/row_groups.h"

namespace hsm::kernels {

/// out[i] = table[rows[i]] · scales[i], i < N: [N, width] from a table of rows of that width. `scales` may be
/// empty (1); with dropout of whole embedding rows it holds a factor a token.
void gather_rows(const float* table, int64_t width, std::span<const int64_t> rows,
                 std::span<const float> scales, float* out, ThreadPool& pool);

/// The gradient of gather_rows: result.row r = Σ gradient[i] · scales[i] over the tokens i of row r, added in
/// ascending order.
void scatter_rows(const RowGroups& groups, std::span<const float> scales, const float* gradient,
                  int64_t width, RowGradients<float>& result, ThreadPool& pool);

/// sum = a + b over the union of their rows, where a's width is at most b's and its missing values are 0: the
/// gradient of a matrix that serves as embedding (a) and, with the bias as last value, in the head (b).
void merge_rows(const RowGradients<float>& a, const RowGradients<float>& b, RowGradients<float>& sum,
                ThreadPool& pool);

}  // namespace hsm::kernels
