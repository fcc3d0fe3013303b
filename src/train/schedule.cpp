#include "train/schedule.h"

#include <algorithm>
#include <cmath>
#include <numbers>

namespace hsm {

Schedule::Schedule(const ScheduleConfig& config, double learning_rate, int64_t total_steps)
    : config_(config), learning_rate_(learning_rate), total_steps_(total_steps) {}

double Schedule::rate(int64_t epoch, int64_t step) const {
  double rate = learning_rate_;
  if (config_.name == "epoch_decay") {
    const int64_t decays = std::max<int64_t>(0, epoch + 1 - config_.after);
    rate *= std::pow(config_.factor, static_cast<double>(decays));
  } else if (config_.name == "plateau") {
    const double reduced = rate * std::pow(config_.factor, static_cast<double>(plateau_.reductions));
    rate = std::max(reduced, std::min(rate, config_.minimum));
  } else if (config_.name == "cosine") {
    rate = cosine(step);
  }
  if (step < config_.warmup_steps) {
    rate *= static_cast<double>(step + 1) / static_cast<double>(config_.warmup_steps);
  }
  return rate;
}

double Schedule::cosine(int64_t step) const {
  const int64_t span = std::max<int64_t>(1, total_steps_ - config_.warmup_steps);
  const int64_t done = std::clamp<int64_t>(step - config_.warmup_steps, 0, span);
  const double part = static_cast<double>(done) / static_cast<double>(span);
  const double floor = std::min(learning_rate_, config_.minimum);
  return floor + (learning_rate_ - floor) * (1 + std::cos(std::numbers::pi * part)) / 2;
}

void Schedule::record_validation(double perplexity) {
  if (perplexity < plateau_.best) {
    plateau_.best = perplexity;
    plateau_.without_improvement = 0;
    return;
  }
  if (++plateau_.without_improvement <= config_.patience) return;
  plateau_.without_improvement = 0;
  ++plateau_.reductions;
}

}  // namespace hsm
