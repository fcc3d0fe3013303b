#include "train/loss_scaler.h"

#include <algorithm>
#include <cassert>
#include <utility>

namespace hsm {
namespace {

// state(): the scale, steps in a row, then two numbers for each result without effect.
constexpr size_t kFixed = 2;

bool is_scale(double value) {
  return value >= LossScaler::kLeastScale && value <= LossScaler::kLargestScale;
}

}  // namespace

LossScaler::LossScaler(int64_t lookahead) : lookahead_(static_cast<size_t>(lookahead)) {}

void LossScaler::apply(const Result& result) {
  if (!result.overflow) {
    if (++good_steps_ < kGrowthSteps) return;
    scale_ = std::min(2 * scale_, kLargestScale);
  } else if (result.scale <= scale_) {
    scale_ = std::max(scale_ / 2, kLeastScale);
  }
  good_steps_ = 0;
}

double LossScaler::begin_step() {
  assert(pending_.size() <= lookahead_);
  while (finished_.size() + pending_.size() > lookahead_) {
    apply(finished_.front());
    finished_.pop_front();
  }
  pending_.push_back(scale_);
  return scale_;
}

bool LossScaler::finish_step(bool overflow) {
  const double scale = pending_.front();
  pending_.pop_front();
  finished_.push_back({scale, overflow});
  return !overflow || scale > kLeastScale;
}

std::vector<double> LossScaler::state() const {
  assert(pending_.empty());
  std::vector<double> state{scale_, static_cast<double>(good_steps_)};
  for (const Result& result : finished_) {
    state.push_back(result.scale);
    state.push_back(result.overflow ? 1 : 0);
  }
  return state;
}

bool LossScaler::restore(const std::vector<double>& state) {
  if (state.size() < kFixed || (state.size() - kFixed) % 2 != 0) return false;
  std::deque<Result> finished;
  for (size_t i = kFixed; i < state.size(); i += 2) {
    if (!is_scale(state[i]) || (state[i + 1] != 0 && state[i + 1] != 1)) return false;
    finished.push_back({state[i], state[i + 1] == 1});
  }
  if (!is_scale(state[0]) || !(state[1] >= 0 && state[1] < kGrowthSteps)) return false;
  scale_ = state[0];
  good_steps_ = static_cast<int64_t>(state[1]);
  pending_.clear();
  finished_ = std::move(finished);
  return true;
}

}  // namespace hsm
