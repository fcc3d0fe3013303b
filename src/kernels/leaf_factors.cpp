#include "kernels/leaf_factors.h"

#include <algorithm>
#include <numeric>
#include <vector>

#include "kernels/gemm.h"

namespace hsm::kernels {
namespace {

constexpr int64_t kRowTile = 12;     // rows of weights that stay in the first cache, a few tiles of a product
constexpr int64_t kRowPiece = 240;   // rows that one item of work updates
constexpr int64_t kNormTokens = 16;  // tokens whose products are held at a time

/// ⟨P·Pᵀ, H·Hᵀ + 1⟩ of tokens [first, first + count) by all from `first` on; what lies beside the diagonal
/// block counts twice.
template <class T>
double products_of_tokens(const FactoredCluster<T>& c, int64_t dim, int64_t first, int64_t count) {
  T by_errors[kNormTokens * kNormTokens];
  T by_hidden[kNormTokens * kNormTokens];
  const T* errors = c.errors + first * c.stride;
  const T* hidden = c.hidden + first * dim;
  double sum = 0;
  for (int64_t other = first; other < c.tokens; other += kNormTokens) {
    const int64_t others = std::min(kNormTokens, c.tokens - other);
    gemm_nt<T>(count, others, c.rows, errors, c.stride, c.errors + other * c.stride, c.stride, nullptr,
               by_errors, others);
    gemm_nt<T>(count, others, dim, hidden, dim, c.hidden + other * dim, dim, nullptr, by_hidden, others);
    double part = 0;
    for (int64_t i = 0; i < count * others; ++i) {
      part += static_cast<double>(by_errors[i]) * (static_cast<double>(by_hidden[i]) + 1);
    }
    sum += other == first ? part : 2 * part;
  }
  return sum;
}

template <class T>
void update_rows(const FactoredCluster<T>& c, int64_t dim, int64_t first, int64_t last, T* weights, T* bias) {
  weights += c.first_row * dim;
  bias += c.first_row;
  for (int64_t row = first; row < last; row += kRowTile) {
    gemm_tn(std::min(kRowTile, last - row), dim, c.tokens, c.errors + row, c.stride, c.hidden, dim, true,
            weights + row * dim, dim);
  }
  for (int64_t t = 0; t < c.tokens; ++t) {
    const T* errors = c.errors + t * c.stride;
    for (int64_t row = first; row < last; ++row) bias[row] += errors[row];
  }
}

}  // namespace

template <class T>
double sum_of_squares(const LeafFactors<T>& factors, ThreadPool& pool) {
  std::vector<double> sums(factors.clusters.size());
  pool.run(static_cast<int64_t>(sums.size()), [&](int64_t item, int) {
    const FactoredCluster<T>& c = factors.clusters[static_cast<size_t>(item)];
    double sum = 0;
    for (int64_t t = 0; t < c.tokens; t += kNormTokens)
      sum += products_of_tokens(c, factors.dim, t, std::min(kNormTokens, c.tokens - t));
    sums[static_cast<size_t>(item)] = sum;
  });
  const double sum = std::accumulate(sums.begin(), sums.end(), 0.0);
  return sum < 0 ? 0 : sum;  // rounding can leave a sum of zero below it
}

template <class T>
void add_gradients(LeafFactors<T>& factors, T factor, T* weights, T* bias, ThreadPool& pool) {
  struct Piece {
    const FactoredCluster<T>* cluster;
    int64_t first;
  };
  std::vector<Piece> pieces;
  for (const FactoredCluster<T>& c : factors.clusters) {
    for (int64_t row = 0; row < c.rows; row += kRowPiece) pieces.push_back({&c, row});
  }
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t item, int) {
    const auto [cluster, first] = pieces[static_cast<size_t>(item)];
    const FactoredCluster<T>& c = *cluster;
    const int64_t last = std::min(c.rows, first + kRowPiece);
    for (int64_t t = 0; t < c.tokens; ++t) {
      for (int64_t row = first; row < last; ++row) c.errors[t * c.stride + row] *= factor;
    }
    update_rows(c, factors.dim, first, last, weights, bias);
  });
}

template double sum_of_squares(const LeafFactors<float>&, ThreadPool&);
template double sum_of_squares(const LeafFactors<double>&, ThreadPool&);
template void add_gradients(LeafFactors<float>&, float, float*, float*, ThreadPool&);
template void add_gradients(LeafFactors<double>&, double, double*, double*, ThreadPool&);

}  // namespace hsm::kernels
