#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"

namespace hsm::kernels {

/// Tokens of a batch by the row of a table that they read. Frequent words stand in a batch many times: what
/// is linear in a row is worked out once a row instead of once a token.
struct RowGroups {
  std::vector<int64_t> rows;   ///< distinct, ascending
  std::vector<int64_t> place;  ///< of each token: its row's place in `rows`
  std::vector<int64_t> order;  ///< tokens by row, ascending within a row
  std::vector<int64_t>
      first;  ///< rows.size() + 1: the tokens of row r are order[first[r]] … order[first[r+1]−1]

  void assign(std::span<const int64_t> row_of_token);
  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(rows.size()); }
};

/// sums[r] = Σ values[i] · scales[i] over the tokens i of row r, added in ascending order: [rows, width] from
/// [tokens, width]. `scales` may be empty (1).
template <class T>
void sum_groups(const RowGroups& groups, std::span<const T> scales, const T* values, int64_t width, T* sums,
                ThreadPool& pool);

}  // namespace hsm::kernels
