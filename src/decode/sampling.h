#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "decode/arena.h"
#include "decode/fixed_vector.h"
#include "decode/options.h"
#include "decode/ranking.h"
#include "decode/row_engine.h"
#include "decode/strategy.h"
#include "decode/word_draw.h"

namespace hsm {

/// Independent samples after each prompt, word by word. A sample depends on the seed, the number of its
/// input and its own number; not on how many others there are or on what runs beside it.
class Sampling : public Strategy {
 public:
  Sampling(Arena& arena, const SamplingOptions& options, RowEngine& engine, int64_t slots);

  [[nodiscard]] int64_t rows_per_input() const override { return options_.samples; }
  void begin(int64_t slot, const Prompt& prompt, const RowSource& source) override;
  [[nodiscard]] std::span<const RowSource> wanted(int64_t slot) const override;
  void step(std::span<const ActiveInput> active) override;
  void write(int64_t slot, const Prompt& prompt, ResultSink& sink) override;
  void report(DecodeStats& stats) const override {
    stats.tokens = tokens_written_;
    stats.possible_expansions = sampler_->possible_expansions();
  }

 private:
  enum class End : uint8_t { none, symbol, impossible };
  struct Sample {
    double log_prob;
    int32_t length;
    End end;
  };
  struct Slot {
    uint64_t input = 0;
    int64_t length = 0;  ///< symbols of the samples that go on
    int64_t going = 0;   ///< how many go on
    int64_t rows = 0;    ///< that they want: one for all before the first word, then one each
    std::span<Sample> samples;
    std::span<int32_t> order;      ///< the samples that go on
    std::span<RowSource> sources;  ///< their rows
    std::span<int32_t> tokens;     ///< max_length a sample
    std::span<double> log_probs;
  };

  void take_in(Slot& slot, std::span<const WordDraw> draws);

  SamplingOptions options_;
  LengthPenalty penalty_;
  int32_t end_of_sentence_;
  std::unique_ptr<WordSampler> sampler_;
  std::vector<Slot> slots_;
  FixedVector<WordDraw> draws_;
  int64_t tokens_written_ = 0;
};

/// Most samples of an input: their numbers are part of the random numbers' key.
inline constexpr int64_t kMostSamples = int64_t{1} << 20;

}  // namespace hsm
