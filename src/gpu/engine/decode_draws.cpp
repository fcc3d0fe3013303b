#include "gpu/engine/decode_draws.h"

#include <algorithm>
#include <cmath>

#include "base/random.h"

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr std::string_view kSampling = "GPU sampling weights";

}  // namespace

DecodeDraws::DecodeDraws(Arena& host, DeviceArena& device, DecodeRows& rows, const SamplingOptions& options,
                         int64_t max_draws)
    : rows_(&rows),
      capacity_(std::min(max_draws, rows.expansion().capacity)),
      requests_(capacity_),
      request_memory_(host, device, requests_.layout, "sampling weights", kSampling),
      drawn_(host.take<dev::DrawnWord>(capacity_, "sampling weights")) {
  const auto key = CounterRandom(options.seed, Purpose::sampling).key();
  pass_.head = rows.head();
  pass_.memory = rows.expansion();
  pass_.power = 1 / options.temperature;
  pass_.key0 = key[0];
  pass_.key1 = key[1];
  pass_.row = request_memory_.device(requests_.row);
  pass_.request = request_memory_.device(requests_.request);
  pass_.drawn = device.take<dev::DrawnWord>(capacity_, kSampling);
  pass_.log_weight = device.take<float>(capacity_ * rows.head().root(), kSampling);
}

void DecodeDraws::run(std::span<WordDraw> draws) {
  possible_ += static_cast<int64_t>(draws.size()) * rows_->head().clusters;
  for_groups(draws, capacity_, [this](std::span<WordDraw> together) { run_together(together); });
}

void DecodeDraws::run_together(std::span<WordDraw> draws) {
  int64_t rows = 0;
  for (size_t i = 0; i < draws.size(); ++i) {
    const auto row = static_cast<int32_t>(draws[i].row);
    request_memory_.host(requests_.row)[i] = row;
    request_memory_.host(requests_.request)[i] = {draws[i].sequence, draws[i].step, row,
                                                  draws[i].end_allowed ? 1 : 0};
    rows = std::max(rows, draws[i].row + 1);
  }
  request_memory_.upload(rows_->kernels());
  pass_.root = rows_->root(0, rows);
  pass_.draws = static_cast<int32_t>(draws.size());
  const auto drawn = drawn_.first(draws.size());
  pass_.starts = true;
  do {
    rows_->kernels().draw_round(pass_);
    rows_->kernels().download(pass_.drawn, static_cast<int64_t>(drawn.size_bytes()), drawn.data());
    pass_.starts = false;
  } while (std::ranges::count(drawn, dev::kUndecided, &dev::DrawnWord::word) > 0);
  take(draws);
}

void DecodeDraws::take(std::span<WordDraw> draws) {
  for (size_t i = 0; i < draws.size(); ++i) {
    const dev::DrawnWord& drawn = drawn_[i];
    if (std::isnan(drawn.log_prob)) {
      throw not_numbers();
    }
    // Every proposal but the one that was taken was a cluster's.
    if (drawn.word == dev::kNothing) {
      rows_->count_expansions(drawn.proposals - 1);
      continue;
    }
    draws[i].word = drawn.word;
    draws[i].log_prob = drawn.log_prob;
    rows_->count_expansions(drawn.proposals - (rows_->model().place(drawn.word).leaf < 0 ? 1 : 0));
  }
}

}  // namespace hsm
