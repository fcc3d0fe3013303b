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
  double bptt_jitter = 0;  ///< window lengths drawn from bptt · (1 ± jitter)
  uint64_t seed = 1;
  bool unk_singletons = false;
};

/// Training windows as a pure function of (epoch, window), so that resuming needs no more than the two
/// numbers. Safe to read ahead from another thread.
class BatchSource {
 public:
  virtual ~BatchSource() = default;
  [[nodiscard]] virtual int64_t windows(int64_t epoch) const = 0;
  [[nodiscard]] virtual Batch window(int64_t epoch, int64_t window) const = 0;
  /// Targets of a whole epoch.
  [[nodiscard]] virtual int64_t targets(int64_t epoch) const = 0;
};

/// The corpus cut into B parallel streams of equal length whose states are carried; the first input of the
/// first stream is `</s>`. The up to B − 1 tokens left over are not trained on.
std::unique_ptr<BatchSource> make_stream_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                 const BatchOptions& options);

/// Every line by itself from zero states, `</s>` its first input and last target; lines of like length
/// together, order shuffled each epoch; lines longer than bptt go on in the next window, carried.
std::unique_ptr<BatchSource> make_sentence_batches(const TokenFile& tokens, const Vocabulary& vocabulary,
                                                   const BatchOptions& options);

}  // namespace hsm
