#pragma once
#include <cstdint>
#include <span>

#include "decode/options.h"
#include "decode/word_draw.h"
#include "gpu/engine/decode_rows.h"

namespace hsm {

/// Draws from the whole vocabulary by the device's kernels: AncestralSampler's rule and random numbers.
class DecodeDraws : public WordSampler {
 public:
  /// For at most `max_draws` at a time. Rows outlive the object.
  DecodeDraws(Arena& host, DeviceArena& device, DecodeRows& rows, const SamplingOptions& options,
              int64_t max_draws);

  void run(std::span<WordDraw> draws) override;
  [[nodiscard]] int64_t possible_expansions() const noexcept override { return possible_; }

 private:
  void run_together(std::span<WordDraw> draws);
  void take(std::span<WordDraw> draws);

  struct Requests {
    explicit Requests(int64_t draws)
        : row(layout.add<int32_t>(draws)), request(layout.add<kernels::device::DrawRequest>(draws)) {}
    BlockLayout layout;
    BlockLayout::Place<int32_t> row;
    BlockLayout::Place<kernels::device::DrawRequest> request;
  };

  DecodeRows* rows_;
  int64_t capacity_;
  Requests requests_;
  MirroredBlock request_memory_;
  std::span<kernels::device::DrawnWord> drawn_;
  kernels::device::DrawPass pass_;
  int64_t possible_ = 0;
};

}  // namespace hsm
