#pragma once
#include <cstdint>
#include <memory>
#include <span>

#include "base/error.h"
#include "decode/arena.h"
#include "decode/candidates.h"
#include "decode/memory_plan.h"
#include "decode/options.h"
#include "decode/sequence_scorer.h"
#include "decode/word_draw.h"
#include "decode/word_filter.h"
#include "decode/word_lookup.h"

namespace hsm {

/// One row of the next step: the state it goes on from, and the token it is fed.
struct RowSource {
  int32_t row = 0;    ///< of the current states, or kZeroState
  int32_t token = 0;  ///< or kCarried
};
inline constexpr int32_t kZeroState = -1;
inline constexpr int32_t kCarried = -1;  ///< no token: the row stays as it is, moved to its new place

/// What engines throw when the model's scores are not numbers.
inline DataError not_numbers() {
  return DataError("the model's scores are not numbers: its weights hold NaN or infinite values");
}

/// The model's side of a search: recurrent states in rows, fed a token a step, and questions about what may
/// follow them. Where states lie and what computes is its own affair; strategies know rows by their numbers.
/// The engine and its parts take all their memory when they are made, from what the decoder has planned.
class RowEngine {
 public:
  virtual ~RowEngine() = default;

  [[nodiscard]] virtual int64_t words() const = 0;
  [[nodiscard]] virtual int32_t end_of_sentence() const = 0;
  /// Clusters of several words: what a dense search would expand for each row.
  [[nodiscard]] virtual int64_t ragged_clusters() const = 0;

  /// Makes rows, which replace those of the step before, and makes the first `scored` of them ready for
  /// questions. DataError when the model's scores are not numbers, here or in the answers.
  virtual void step(std::span<const RowSource> sources, int64_t scored) = 0;

  // Parts, each made once before the first step; the engine outlives them.

  /// For at most `max_queries` at a time of at most `max_parents` hypotheses each, which want at most
  /// `most_words` words.
  [[nodiscard]] virtual std::unique_ptr<WordSearch> make_word_search(int64_t max_queries, int64_t max_parents,
                                                                     int64_t most_words) = 0;
  [[nodiscard]] virtual std::unique_ptr<AllowedMass> make_allowed_mass() = 0;
  /// Draws from the whole vocabulary.
  [[nodiscard]] virtual std::unique_ptr<WordSampler> make_ancestral_sampler(const SamplingOptions& options,
                                                                            int64_t max_draws) = 0;
  /// For inputs in `slots` slots, of at most `max_sequences` outputs each.
  [[nodiscard]] virtual std::unique_ptr<SequenceScorer> make_sequence_scorer(int64_t slots,
                                                                             int64_t max_sequences) = 0;
  /// For `capacity` questions that are open at a time.
  [[nodiscard]] virtual std::unique_ptr<WordLookup> make_word_lookup(int64_t capacity) = 0;

  /// Clusters computed since the beginning, for a row each.
  [[nodiscard]] virtual int64_t expansions() const = 0;
  /// Memory that the engine and its parts hold elsewhere than in the arena: on a GPU.
  [[nodiscard]] virtual std::span<const MemoryPart> device_memory() const { return {}; }
};

/// What an engine is made for.
struct EngineLimits {
  int64_t rows = 1;           ///< of a step
  int64_t expansions = 1;     ///< clusters computed at a time
  bool carries = false;       ///< rows may be carried over a step
  uint64_t device_bytes = 0;  ///< planned for device_memory(); 0 while the arena measures
};

/// Where a model is decoded.
class DecodeDevice {
 public:
  virtual ~DecodeDevice() = default;

  [[nodiscard]] virtual int64_t words() const = 0;
  [[nodiscard]] virtual int64_t clusters() const = 0;
  /// Rows in a step beyond which more inputs together gain little, and inputs that may be under way.
  [[nodiscard]] virtual int64_t useful_rows() const = 0;
  [[nodiscard]] virtual int64_t useful_inputs() const = 0;
  /// Bytes of weights that it holds beside the model's file.
  [[nodiscard]] virtual uint64_t weight_copies() const { return 0; }
  /// Device, arena and filter outlive the engine. ResourceError when the memory is not to be had.
  [[nodiscard]] virtual std::unique_ptr<RowEngine> make_engine(Arena& arena, const WordFilter& filter,
                                                               const EngineLimits& limits) const = 0;
};

}  // namespace hsm
