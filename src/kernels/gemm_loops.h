#pragma once
// The loops of gemm_kernels.h; see simd.h for who may include this file.
#include "kernels/gemm_kernels.h"
#include "kernels/simd.h"

namespace hsm::kernels {
namespace {

// Two vectors of columns a panel: with kMostRows rows their accumulators, the two vectors of B and one of A
// fill the registers.
template <class T>
inline constexpr int kPanel = 2 * kLanes<T>;
inline constexpr int kMostRows = (kRegisters - 3) / 2;
// What is repacked of B at a time for products with many rows of A: kDepth rows of kPanels panels. Rows are
// read in pieces long enough for the processor to see a stream.
inline constexpr int64_t kDepth = 96;
inline constexpr int64_t kPanels = 4;
// A smaller B stays in the second cache, where rows of A in a few tiles can read it as it lies.
inline constexpr int64_t kSmallBytes = int64_t{1} << 20;
// Few rows leave registers for columns of several panels, which hides the latency of the multiply-adds.
constexpr int wide_vectors(int rows) {
  const int most = (kRegisters - 2) / (rows + 1) / 2 * 2;
  return most > 8 ? 8 : most;
}
inline constexpr int kMostWideRows = kRegisters == 32 ? 6 : 2;
// A tile as narrow as a panel reads one stream of B, which the processor alone doesn't fetch far enough ahead
// when B lies outside the second cache: it is asked for this many steps of k ahead, a line after the other.
template <class T>
inline constexpr int64_t kFetchAhead = 2048 / (kPanel<T> * static_cast<int64_t>(sizeof(T)));
template <class T>
inline constexpr int kLine = 64 / static_cast<int>(sizeof(T));
// A transposed A has a row for each step of k, each often on a page of its own, where the processor alone
// sees no stream: asked for so many rows ahead, by tiles that are tall enough to hide the asking.
inline constexpr int64_t kRowsAhead = 24;
inline constexpr int kFewestRowsFetched = 7;

/// One tile of C: all of k.
template <class T>
struct Tile {
  const Product<T>& product;
  const T* a;
  const T* b;
  const T* bias;
  T* c;
  int64_t columns;  ///< what the last vector holds, for tiles with a tail
};

/// Asks for a panel's columns of so many rows: where the next tile starts from, which it could only wait for.
template <class T, int Rows>
inline void fetch_lines(const T* c, int64_t ldc) {
  HSM_UNROLL
  for (int i = 0; i < Rows; ++i) {
    HSM_UNROLL
    for (int j = 0; j < kPanel<T>; j += kLine<T>) __builtin_prefetch(c + i * ldc + j);
  }
}

/// `Rows` rows times `Vectors` vectors of columns; with `Tail` the last vector is partly used.
template <class T, int Rows, int Vectors, bool Tail>
void multiply_tile(const Tile<T>& tile) {
  constexpr int kLast = Tail ? Vectors - 1 : -1;
  constexpr int kGroups = (Rows + 2) / 3;
  const Product<T>& p = tile.product;
  const int64_t columns = tile.columns;
  Vector<T> sums[Rows][Vectors];
  HSM_UNROLL
  for (int j = 0; j < Vectors; ++j) {
    Vector<T> start = {};
    if (tile.bias != nullptr) {
      const T* from = tile.bias + j * kLanes<T>;
      start = j == kLast ? load_first(from, columns) : load(from);
    }
    HSM_UNROLL
    for (int i = 0; i < Rows; ++i) {
      sums[i][j] = start;
      if (p.accumulate) {
        const T* from = tile.c + i * p.ldc + j * kLanes<T>;
        sums[i][j] += j == kLast ? load_first(from, columns) : load(from);
      }
    }
  }
  // A pointer for every third row: the rows between are reached by the index of an address.
  const T* rows[kGroups];
  HSM_UNROLL
  for (int g = 0; g < kGroups; ++g) rows[g] = tile.a + 3 * g * p.a_row;
  const T* b = tile.b;
  const int64_t a_row = p.a_row;
  const int64_t a_k = p.a_k;
  const int64_t b_k = p.b_k;
  const int64_t b_panel = p.b_panel;
  const bool masked = !p.packed;
  if (Vectors == 2 && p.accumulate) fetch_lines<T, Rows>(tile.c + kPanel<T>, p.ldc);
  const int64_t a_ahead = p.a_row == 1 ? kRowsAhead * a_k : 0;
  HSM_UNROLL_TWICE
  for (int64_t left = p.k; left > 0; --left) {
    if constexpr (Rows >= kFewestRowsFetched) {
      __builtin_prefetch(rows[0] + a_ahead);
      __builtin_prefetch(rows[kGroups - 1] + a_ahead);
    }
    if constexpr (Vectors <= 2) {
      HSM_UNROLL
      for (int j = 0; j < Vectors * kLanes<T>; j += kLine<T>)
        __builtin_prefetch(b + kFetchAhead<T> * b_k + j);
    }
    Vector<T> columns_of_b[Vectors];
    HSM_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      const T* from = b + (j / 2) * b_panel + (j % 2) * kLanes<T>;
      columns_of_b[j] = j == kLast && masked ? load_first(from, columns) : load(from);
    }
    HSM_UNROLL
    for (int i = 0; i < Rows; ++i) {
      const Vector<T> value = broadcast(rows[i / 3][(i % 3) * a_row]);
      HSM_UNROLL
      for (int j = 0; j < Vectors; ++j) sums[i][j] = multiply_add(value, columns_of_b[j], sums[i][j]);
    }
    b += b_k;
    HSM_UNROLL
    for (int g = 0; g < kGroups; ++g) {
      rows[g] += a_k;
      asm("" : "+r"(rows[g]));  // keeps GCC from a register a row, of which there are too few
    }
  }
  HSM_UNROLL
  for (int i = 0; i < Rows; ++i) {
    HSM_UNROLL
    for (int j = 0; j < Vectors; ++j) {
      T* to = tile.c + i * p.ldc + j * kLanes<T>;
      if (j == kLast) {
        store_first(to, sums[i][j], columns);
      } else {
        store(to, sums[i][j]);
      }
    }
  }
}

template <class T>
using TileFunction = void (*)(const Tile<T>&);

/// Functions for 1 … kMostRows rows.
template <class T>
struct TileFunctions {
  TileFunction<T> panel[kMostRows];
  TileFunction<T> tail[kMostRows];  ///< at most one vector of columns
  TileFunction<T> wide[kMostRows];  ///< wide_vectors(rows); null where no wider than a panel
};

template <class T, int Rows>
struct FillTileFunctions {
  static constexpr void fill(TileFunctions<T>& functions) {
    functions.panel[Rows - 1] = multiply_tile<T, Rows, 2, false>;
    functions.tail[Rows - 1] = multiply_tile<T, Rows, 1, true>;
    functions.wide[Rows - 1] = nullptr;
    if constexpr (Rows <= kMostWideRows) {
      functions.wide[Rows - 1] = multiply_tile<T, Rows, wide_vectors(Rows), false>;
    }
    if constexpr (Rows > 1) FillTileFunctions<T, Rows - 1>::fill(functions);
  }
};

template <class T>
constexpr TileFunctions<T> make_tile_functions() {
  TileFunctions<T> functions = {};
  FillTileFunctions<T, kMostRows>::fill(functions);
  return functions;
}

template <class T>
constexpr TileFunctions<T> kTileFunctions = make_tile_functions<T>();

/// All columns for `rows` rows from row `i` on.
template <class T>
void multiply_rows(const Product<T>& p, int64_t i, int rows) {
  const TileFunctions<T>& functions = kTileFunctions<T>;
  const T* a = p.a + i * p.a_row;
  T* c = p.c + i * p.ldc;
  int64_t j = 0;
  const auto tile = [&](TileFunction<T> function, int64_t columns) {
    function({p, a, p.b + j / kPanel<T> * p.b_panel + j % kPanel<T>, p.bias == nullptr ? nullptr : p.bias + j,
              c + j, columns});
  };
  if (const TileFunction<T> wide = functions.wide[rows - 1]; wide != nullptr) {
    const int64_t width = static_cast<int64_t>(wide_vectors(rows)) * kLanes<T>;
    for (; j + width <= p.n; j += width) tile(wide, 0);
  }
  for (; j + kPanel<T> <= p.n; j += kPanel<T>) tile(functions.panel[rows - 1], 0);
  for (; j < p.n; j += kLanes<T>) tile(functions.tail[rows - 1], p.n - j < kLanes<T> ? p.n - j : kLanes<T>);
}

/// Calls body(first row, rows) for tiles of nearly equal size.
template <class Body>
void for_row_tiles(int64_t m, int64_t most, Body body) {
  const int64_t tiles = (m + most - 1) / most;
  for (int64_t t = 0; t < tiles; ++t) {
    const int64_t first = t * m / tiles;
    body(first, static_cast<int>((t + 1) * m / tiles - first));
  }
}

/// Copies `columns` columns of a row of B into panels `depth` rows deep, the last one padded with zeros.
template <class T>
inline void repack_row(const T* from, int64_t columns, int64_t depth, T* to) {
  for (; columns >= kPanel<T>; columns -= kPanel<T>, from += kPanel<T>, to += depth * kPanel<T>) {
    store(to, load(from));
    store(to + kLanes<T>, load(from + kLanes<T>));
  }
  if (columns == 0) return;
  const int64_t low = columns < kLanes<T> ? columns : kLanes<T>;
  store(to, load_first(from, low));
  store(to + kLanes<T>, low < columns ? load_first(from + low, columns - low) : Vector<T>{});
}

/// Many rows of A: each piece of B is used by many tiles, so it is copied to where they read it in sequence.
/// Sums go on from one block of k to the next through C, which rounds nothing.
template <class T>
void multiply_repacked(const Product<T>& p) {
  alignas(64) T panels[kDepth * kPanels * kPanel<T>];
  for (int64_t k = 0; k < p.k; k += kDepth) {
    const int64_t depth = p.k - k < kDepth ? p.k - k : kDepth;
    for (int64_t j = 0; j < p.n; j += kPanels * kPanel<T>) {
      const int64_t columns = p.n - j < kPanels * kPanel<T> ? p.n - j : kPanels * kPanel<T>;
      for (int64_t kk = 0; kk < depth; ++kk) {
        repack_row(p.b + (k + kk) * p.b_k + j, columns, depth, panels + kk * kPanel<T>);
      }
      Product<T> part = p;
      part.n = columns;
      part.k = depth;
      part.a = p.a + k * p.a_k;
      part.b = panels;
      part.b_k = kPanel<T>;
      part.b_panel = depth * kPanel<T>;
      part.packed = true;
      part.bias = p.bias == nullptr || k > 0 ? nullptr : p.bias + j;
      part.accumulate = p.accumulate || k > 0;
      part.c = p.c + j;
      for_row_tiles(p.m, kMostRows, [&](int64_t first, int rows) { multiply_rows(part, first, rows); });
    }
  }
}

/// Whether copying parts of B in order pays.
template <class T>
bool repacking_pays(const Product<T>& p) {
  if (p.packed || p.k == 0 || p.m <= kMostWideRows) return false;
  return p.m > 2 * kMostRows || p.k * p.n * static_cast<int64_t>(sizeof(T)) > kSmallBytes;
}

template <class T>
void product(const Product<T>& p) {
  if (repacking_pays(p)) {
    multiply_repacked(p);
    return;
  }
  if (p.m <= kMostRows && p.blocks == 1) {
    if (p.m > 0) multiply_rows(p, 0, static_cast<int>(p.m));
    return;
  }
  // Panel by panel: one is read from memory once and then found in a cache by every tile of rows.
  for (int64_t j = 0; j < p.n; j += kPanel<T>) {
    Product<T> part = p;
    part.n = p.n - j < kPanel<T> ? p.n - j : kPanel<T>;
    part.b = p.b + j / kPanel<T> * p.b_panel;
    part.bias = p.bias == nullptr ? nullptr : p.bias + j;
    part.c = p.c + j;
    for (int64_t block = 0; block < p.blocks; ++block) {
      for_row_tiles(p.m, kMostRows, [&](int64_t first, int rows) { multiply_rows(part, first, rows); });
      part.a += p.a_block;
      part.c += p.c_block;
    }
  }
}

// Rows of A and rows of B whose dot products are summed together.
inline constexpr int kDotRows = kRegisters == 32 ? 6 : 3;
inline constexpr int kDotColumns = 4;
// Bytes of B that stay in the second cache while all rows of A pass.
inline constexpr int64_t kDotBlockBytes = 192 * 1024;

/// Rows [i, i + Rows) times four rows of B from j on; those past the end repeat the last and are dropped.
template <class T, int Rows>
void dot_tile(const RowProduct<T>& p, int64_t i, int64_t j) {
  const T* a[Rows];
  HSM_UNROLL
  for (int r = 0; r < Rows; ++r) a[r] = p.a_rows != nullptr ? p.a_rows[i + r] : p.a + (i + r) * p.lda;
  const int64_t columns = p.n - j < kDotColumns ? p.n - j : kDotColumns;
  const T* b[kDotColumns];
  HSM_UNROLL
  for (int q = 0; q < kDotColumns; ++q) b[q] = p.b + (j + (q < columns ? q : columns - 1)) * p.ldb;
  Vector<T> sums[Rows][kDotColumns] = {};
  const auto add = [&](const auto& read) {
    Vector<T> of_b[kDotColumns];
    HSM_UNROLL
    for (int q = 0; q < kDotColumns; ++q) of_b[q] = read(b[q]);
    HSM_UNROLL
    for (int r = 0; r < Rows; ++r) {
      const Vector<T> of_a = read(a[r]);
      HSM_UNROLL
      for (int q = 0; q < kDotColumns; ++q) sums[r][q] = multiply_add(of_a, of_b[q], sums[r][q]);
    }
  };
  int64_t k = 0;
  for (; k + kLanes<T> <= p.k; k += kLanes<T>) add([k](const T* from) { return load(from + k); });
  if (k < p.k) add([k, left = p.k - k](const T* from) { return load_first(from + k, left); });
  HSM_UNROLL
  for (int r = 0; r < Rows; ++r) {
    T dots[kDotColumns];
    sum_lanes_of_four(sums[r], dots);
    T* c = p.c + (i + r) * p.ldc + j;
    if (columns == kDotColumns) {
      HSM_UNROLL
      for (int q = 0; q < kDotColumns; ++q) c[q] = dots[q] + (p.bias == nullptr ? T{0} : p.bias[j + q]);
    } else {
      for (int64_t q = 0; q < columns; ++q) c[q] = dots[q] + (p.bias == nullptr ? T{0} : p.bias[j + q]);
    }
  }
}

template <class T>
using DotFunction = void (*)(const RowProduct<T>&, int64_t, int64_t);

template <class T>
constexpr DotFunction<T> kDotFunctions[6] = {dot_tile<T, 1>,
                                             dot_tile<T, 2>,
                                             dot_tile<T, 3>,
                                             dot_tile<T, kDotRows >= 4 ? 4 : 1>,
                                             dot_tile<T, kDotRows >= 5 ? 5 : 1>,
                                             dot_tile<T, kDotRows >= 6 ? 6 : 1>};

template <class T>
void row_product(const RowProduct<T>& p) {
  const int64_t fit =
      kDotBlockBytes / static_cast<int64_t>(sizeof(T)) / (p.k + 1) / kDotColumns * kDotColumns;
  const int64_t block = fit < kDotColumns ? kDotColumns : fit;
  for (int64_t j0 = 0; j0 < p.n; j0 += block) {
    const int64_t j1 = p.n < j0 + block ? p.n : j0 + block;
    for_row_tiles(p.m, kDotRows, [&](int64_t first, int rows) {
      for (int64_t j = j0; j < j1; j += kDotColumns) kDotFunctions<T>[rows - 1](p, first, j);
    });
  }
}

template <class T>
constexpr GemmKernels<T> kGemmKernels = {kPanel<T>, product<T>, row_product<T>};

}  // namespace
}  // namespace hsm::kernels
