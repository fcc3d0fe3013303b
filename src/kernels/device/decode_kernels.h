#pragma once
#include <cstdint>

#include "kernels/device/decode_bodies.h"
#include "kernels/device/draw_args.h"

// Read by the CUDA compiler, too, and so C++17.
namespace hsm::kernels::device {

/// A model's head on the device, and which of its words may be generated. Pointers into the device's memory.
struct DecodeHead {
  int64_t words = 0;
  int64_t shortlist = 0;
  int64_t clusters = 0;
  int64_t dim = 0;
  int64_t largest_cluster = 0;
  int32_t end_row = -1;            ///< row of the end symbol, which lies in the shortlist
  const float* word = nullptr;     ///< [V, D]
  const float* cluster = nullptr;  ///< [C, D]
  const float* word_bias = nullptr;
  const float* cluster_bias = nullptr;
  const int64_t* cluster_offsets = nullptr;  ///< [C + 1]
  const int32_t* word_of_row = nullptr;      ///< [V]
  const uint32_t* forbidden = nullptr;       ///< a bit a word id

  [[nodiscard]] int64_t root() const { return shortlist + clusters; }
};

/// Rows of a step: what the head reads, and the root's logits.
struct RootRows {
  int64_t rows = 0;
  const float* hidden = nullptr;  ///< [rows, D]
  float* logit = nullptr;         ///< [rows, R]
  LogSum<float>* part = nullptr;  ///< [rows, DecodeKernels::root_parts(R)]

  /// The same from a row on.
  [[nodiscard]] RootRows from(int64_t first, int64_t count, const DecodeHead& head, int64_t parts) const {
    return {count, hidden + first * head.dim, logit + first * head.root(), part + first * parts};
  }
};

/// What clusters are expanded in: memory for `capacity` pairs of a row and a cluster, at most kMostPairs.
struct ExpansionMemory {
  int64_t capacity = 0;
  Ranked* pair = nullptr;              ///< [capacity]
  int32_t* pair_count = nullptr;       ///< [capacity]
  int32_t* order = nullptr;            ///< [capacity]
  int32_t* item_start = nullptr;       ///< [capacity + 1]
  int32_t* item_count = nullptr;       ///< [1]
  float* leaf_logit = nullptr;         ///< [capacity, largest cluster]
  LogSum<float>* leaf_part = nullptr;  ///< [capacity]
};

/// The search of SearchArgs; see there for what belongs to the caller and what is filled.
struct SearchPass {
  DecodeHead head;
  RootRows root;  ///< the queries' rows
  ExpansionMemory memory;
  int32_t queries = 0;
  int32_t kept = 0;           ///< at most kMostKept
  int32_t pairs_a_round = 0;  ///< at most kMostPairsARound, and queries · pairs_a_round at most the capacity
  const int32_t* first_row = nullptr;     ///< [queries + 1]
  const int32_t* query_of_row = nullptr;  ///< [rows]
  const double* score = nullptr;          ///< [rows]
  const Ranked* after = nullptr;          ///< [queries]
  float* root_log_sum = nullptr;          ///< [rows]
  Ranked* row_best = nullptr;             ///< [rows, kept]
  Ranked* last_pair = nullptr;            ///< [queries]
  Ranked* pair_best = nullptr;            ///< [queries · pairs_a_round, kept]
  Ranked* best = nullptr;                 ///< [queries, kept]
  int32_t* more = nullptr;                ///< [queries]
  float* end_log_prob = nullptr;          ///< [rows]
  int64_t* expanded = nullptr;            ///< [queries]
};

/// Questions for the log-probabilities of given words. `memory.pair` and `memory.pair_count` say, for each
/// question, which cluster is to be expanded ({0, 0, cluster}), and whether one is (1 or 0).
struct WordScorePass {
  DecodeHead head;
  RootRows root;
  ExpansionMemory memory;
  int32_t questions = 0;            ///< at most the capacity
  const int32_t* row = nullptr;     ///< [questions]
  const int32_t* column = nullptr;  ///< [questions]
  const int32_t* leaf = nullptr;    ///< [questions]: negative when no cluster is expanded
  double* log_prob = nullptr;       ///< [questions]
};

/// Words to be drawn; see DrawArgs.
struct DrawPass {
  DecodeHead head;
  RootRows root;
  ExpansionMemory memory;
  int32_t draws = 0;  ///< at most the capacity
  bool starts = false;
  double power = 1;
  uint32_t key0 = 0;
  uint32_t key1 = 0;
  const int32_t* row = nullptr;  ///< [draws], of the requests
  const DrawRequest* request = nullptr;
  DrawnWord* drawn = nullptr;
  float* log_weight = nullptr;  ///< [draws, R]
};

/// y = x · weightᵀ + bias for rows of x.
struct LinearPass {
  int64_t rows = 0;
  int64_t inputs = 0;
  int64_t outputs = 0;
  const float* x = nullptr;       ///< [rows, inputs]
  const float* weight = nullptr;  ///< [outputs, inputs]
  const float* bias = nullptr;    ///< [outputs]
  float* y = nullptr;             ///< [rows, outputs]
  LogSum<float>* part = nullptr;  ///< scratch, [rows, DecodeKernels::root_parts(outputs)]
};

/// The kernels of a decoding step in float32, all on one stream. Every result of a row depends on that row
/// alone, to the bit.
class DecodeKernels {
 public:
  virtual ~DecodeKernels() = default;

  /// Copies to the device; `from` may be changed when it returns.
  virtual void upload(const void* from, int64_t bytes, void* to) = 0;
  /// Waits for what was launched, and copies from the device.
  virtual void download(const void* from, int64_t bytes, void* to) = 0;

  /// GatherRows of row_bodies.h, unscaled.
  virtual void gather_rows(const float* table, int64_t width, const int32_t* rows, int64_t count,
                           float* out) = 0;
  virtual void linear(const LinearPass& pass) = 0;
  virtual void cell_step(const CellStep& step, int64_t rows) = 0;

  /// Parts that a row's log-sum over so many columns comes in.
  [[nodiscard]] virtual int64_t root_parts(int64_t columns) const = 0;
  virtual void root_scores(const DecodeHead& head, const RootRows& rows) = 0;
  virtual void search_start(const SearchPass& pass) = 0;
  virtual void search_round(const SearchPass& pass) = 0;
  virtual void word_scores(const WordScorePass& pass) = 0;
  virtual void draw_round(const DrawPass& pass) = 0;
};

}  // namespace hsm::kernels::device
