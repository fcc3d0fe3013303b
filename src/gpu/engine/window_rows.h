#pragma once
#include <cstdint>
#include <vector>

#include "classes/word_classes.h"
#include "model/micro_batch.h"
#include "text/batches.h"

namespace hsm {

/// A run of numbers in WindowRows::numbers.
struct NumberRange {
  int64_t first = 0;
  int64_t count = 0;
};

/// Tokens that the head works on in one pass.
struct HeadChunk {
  int64_t first = 0;  ///< token of the piece
  int64_t tokens = 0;
  int64_t most_hit_rows = 0;  ///< see HeadSizes
  NumberRange places;         ///< of the rows of its compact gradient among WindowRows::head
};

/// Streams of a window that are worked on together.
struct WindowPiece {
  StreamGroup group;
  int64_t tokens = 0;
  NumberRange inputs;   ///< rows of the embedding
  NumberRange targets;  ///< rows of the head, −1 for none
  NumberRange order;    ///< tokens by the row they read, ascending within a row
  NumberRange starts;   ///< of each distinct row's tokens in `order`, and the end
  NumberRange places;   ///< of the distinct rows among WindowRows::embedding
  NumberRange scales;   ///< floats that the inputs' rows are multiplied by; empty: none. See append_factors()
  std::vector<HeadChunk> chunks;
};

/// What of a window's work can be listed from its tokens alone: which rows it reads and gives gradients to.
/// Made on the host and sent to the device in one piece, so that nothing has to be sorted or counted there or
/// read back.
struct WindowRows {
  std::vector<int32_t> numbers;
  std::vector<WindowPiece> pieces;
  NumberRange embedding;         ///< rows of the embedding that get a gradient, ascending
  NumberRange head;              ///< and rows of the head's words; with tied embeddings the union of both
  NumberRange embedding_places;  ///< with `dense`: for each row of the vocabulary its place among `embedding`
  NumberRange head_places;       ///< or −1; likewise for `head`
  NumberRange scale;             ///< a float, the factor of the summed loss. See append_factors()

  /// True when the head's one pass gives all of `head`, in its order.
  [[nodiscard]] bool one_pass() const { return pieces.size() == 1 && pieces[0].chunks.size() == 1; }
};

/// Appends what a window's values are multiplied by: `scale`, and scales of inputs where words are dropped
/// with this probability, by masks of `seed` and `step` as TrainingModel has them.
void append_factors(WindowRows& rows, float scale, double dropped, uint64_t seed, int64_t step);

/// Words of the largest cluster; 0 where there is none.
int64_t largest_cluster(const HeadLayout& layout);

/// Lists the rows of windows of one model.
class WindowLister {
 public:
  /// `dense`: the optimiser moves rows without a gradient, too. `layout` outlives the object.
  WindowLister(const HeadLayout& layout, const StepPieces& pieces, bool tied, bool dense);

  [[nodiscard]] WindowRows list(const Batch& batch) const;

 private:
  [[nodiscard]] int64_t most_hit_rows(int64_t tokens) const;

  const HeadLayout& layout_;
  StepPieces pieces_;
  bool tied_;
  bool dense_;
  std::vector<int64_t> cluster_rows_;  // sums of the sizes of the largest clusters, of one on
};

}  // namespace hsm
