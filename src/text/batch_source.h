#pragma once
#include <cstdint>
#include <memory>

#include "text/batches.h"
#include "text/token_file.h"
#include "text/vocabulary.h"

namespace hsm {

struct BatchOptions {
  int64_t streams = 20;    ///< B
  int64_t bptt = 35;       ///< T
  double bptt_jitter = 0;  ///< in [0, 1): lengths drawn evenly from the whole numbers in bptt · (1 ± jitter)
  uint64_t seed = 1;
  /// Each occurrence of a word seen once in training is `<unk>` with probability 1/2, drawn by epoch and
  /// position: so `<unk>` is trained, and the words are, too.
  bool unk_singletons = false;
};

/// Training windows as a pure function of (epoch, window), so that resuming needs no more than the two
/// numbers. Epochs and windows count from 0. Safe to use from several threads.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Windows of an epoch, at least 1. Differs between epochs with jitter.
  [[nodiscard]] virtual int64_t windows(int64_t epoch) const = 0;
  [[nodiscard]] virtual Batch window(int64_t epoch, int64_t window) const = 0;
  /// Targets of a whole epoch.
  [[nodiscard]] virtual int64_t targets(int64_t epoch) const = 0;
};

// Both keep a reference to `tokens`, which must outlive them. UsageError for options out of range, DataError
// for a text that is too short.

/// The corpus cut into B parallel streams of equal length whose states are carried; the first input of the
/// first stream is `</s>`, that of another stream the token before it. The up to B − 1 tokens left over are
/// not trained on. Every window has B streams; the first of an epoch starts from zero states.
std::unique_ptr<BatchSource> make_stream_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                 const BatchOptions& options);

/// Every line by itself from zero states, `</s>` its first input and last target; B lines of like length
/// together, those of equal length and the order of batches shuffled each epoch; lines longer than bptt go on
/// in the next window, carried. One batch of the epoch may have fewer than B lines, and so fewer streams.
/// With jitter each batch draws a length for its windows. Holds 8 bytes a line.
std::unique_ptr<BatchSource> make_sentence_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                   const BatchOptions& options);

}  // namespace hsm
