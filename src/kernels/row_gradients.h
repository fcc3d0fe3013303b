#pragma once
#include <cstdint>
#include <vector>

namespace hsm::kernels {

/// Gradient of a matrix of which a batch touches few rows: sorted distinct row ids and their values.
template <class T>
struct RowGradients {
  int64_t width = 0;          ///< values a row
  std::vector<int64_t> rows;  ///< ascending
  std::vector<T> values;      ///< rows.size() · width
};

}  // namespace hsm::kernels
