#include "kernels/optimizer.h"

#include <algorithm>
#include <cassert>
#include <cmath>
#include <numeric>
#include <stdexcept>
#include <string>

#include "kernels/optimizer_kernels.h"

namespace hsm::kernels {
namespace {

// Values that one piece of work covers.
constexpr int64_t kPiece = 16384;

int64_t divide_up(int64_t a, int64_t b) {
  return (a + b - 1) / b;
}
int64_t rows_of_piece(int64_t width) {
  return std::max<int64_t>(1, kPiece / std::max<int64_t>(1, width));
}

const OptimizerKernels& active() {
  static const OptimizerKernels& kernels = optimizer_kernels(active_instruction_set());
  return kernels;
}

UpdateRange range_of(const OptimizerSlot& slot, const float* gradient, int64_t first, int64_t count) {
  const auto at = [first](std::span<float> values) {
    return values.empty() ? nullptr : values.data() + first;
  };
  return {count, gradient, at(slot.value), at(slot.first), at(slot.second)};
}

/// What steps with zero gradients do to a value and its momentum: both become sums of what both were.
struct Drift {
  double value_of_value = 1;
  double value_of_first = 0;
  double first_of_value = 0;
  double first_of_first = 1;
};

/// `later` after a step at this rate.
Drift before(const Drift& later, const OptimizerOptions& options, double rate) {
  const double keep = 1 - rate * options.weight_decay;
  if (options.kind != OptimizerKind::momentum) return {later.value_of_value * keep, 0, 0, 1};
  const double push = -rate * options.momentum;
  return {later.value_of_value * keep + later.value_of_first * options.weight_decay,
          later.value_of_value * push + later.value_of_first * options.momentum,
          later.first_of_value * keep + later.first_of_first * options.weight_decay,
          later.first_of_value * push + later.first_of_first * options.momentum};
}

/// Brings rows that lag behind to the end of one step. Made once a call, for all threads.
class CatchUp {
 public:
  /// `oldest`: the least stamp of the rows it will be asked about.
  CatchUp(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
          int64_t until, int64_t oldest)
      : options_(options), history_(history), slot_(slot), until_(until) {
    if (oldest >= until) return;
    if (oldest + 1 < history.oldest()) {
      throw std::logic_error("optimizer: a row stands at step " + std::to_string(oldest) +
                             ", but learning rates are known from step " + std::to_string(history.oldest()) +
                             " on");
    }
    if (options.kind == OptimizerKind::adagrad) return;
    drifts_.resize(static_cast<size_t>(until - oldest) + 1);
    for (size_t lag = 1; lag < drifts_.size(); ++lag) {
      const int64_t step = until - static_cast<int64_t>(lag) + 1;
      drifts_[lag] = before(drifts_[lag - 1], options, history.learning_rate(step));
    }
  }

  void run(int64_t row) const {
    int64_t& stamp = slot_.stamps[static_cast<size_t>(row)];
    if (stamp >= until_) return;
    if (options_.kind == OptimizerKind::adagrad) {
      const UpdateRange range = range_of(slot_, nullptr, row * slot_.width, slot_.width);
      for (int64_t step = stamp + 1; step <= until_; ++step) {
        active().update(make_rule(options_, step, history_.learning_rate(step), 1), range);
      }
    } else {
      drift(drifts_[static_cast<size_t>(until_ - stamp)], row * slot_.width);
    }
    stamp = until_;
  }

 private:
  void drift(const Drift& d, int64_t at) const {
    float* value = slot_.value.data() + at;
    if (options_.kind != OptimizerKind::momentum) {
      for (int64_t i = 0; i < slot_.width; ++i) value[i] = static_cast<float>(d.value_of_value * value[i]);
      return;
    }
    float* first = slot_.first.data() + at;
    for (int64_t i = 0; i < slot_.width; ++i) {
      const double v = value[i];
      const double m = first[i];
      value[i] = static_cast<float>(d.value_of_value * v + d.value_of_first * m);
      first[i] = static_cast<float>(d.first_of_value * v + d.first_of_first * m);
    }
  }

  const OptimizerOptions& options_;
  const StepHistory& history_;
  const OptimizerSlot& slot_;
  int64_t until_;
  std::vector<Drift> drifts_;  // by how many steps a row lags
};

/// Body(i) for i in [0, rows), on the pool.
template <class Body>
void for_rows(int64_t rows, int64_t width, ThreadPool& pool, Body body) {
  const int64_t piece = rows_of_piece(width);
  pool.run(divide_up(rows, piece), [&](int64_t item, int) {
    for (int64_t i = item * piece; i < std::min(rows, (item + 1) * piece); ++i) body(i);
  });
}

int64_t oldest_stamp(const OptimizerSlot& slot, std::span<const int64_t> rows, int64_t oldest) {
  for (const int64_t row : rows) oldest = std::min(oldest, slot.stamps[static_cast<size_t>(row)]);
  return oldest;
}

void check_moments(const OptimizerOptions& options, const OptimizerSlot& slot) {
  assert(!uses_first_moment(options) || slot.first.size() == slot.value.size());
  assert(!uses_second_moment(options) || slot.second.size() == slot.value.size());
  static_cast<void>(options);
  static_cast<void>(slot);
}

}  // namespace

UpdateRule make_rule(const OptimizerOptions& options, int64_t step, double learning_rate, double scale) {
  UpdateRule rule{.kind = options.kind,
                  .rate = static_cast<float>(learning_rate),
                  .scale = static_cast<float>(scale),
                  .decay = static_cast<float>(options.weight_decay),
                  .momentum = static_cast<float>(options.momentum),
                  .rest1 = static_cast<float>(1 - options.beta1),
                  .beta2 = static_cast<float>(options.beta2),
                  .rest2 = static_cast<float>(1 - options.beta2),
                  .epsilon = static_cast<float>(options.epsilon)};
  if (options.kind == OptimizerKind::adam || options.kind == OptimizerKind::adamw) {
    const auto t = static_cast<double>(step);
    rule.rate = static_cast<float>(learning_rate / (1 - std::pow(options.beta1, t)));
    rule.root_factor = static_cast<float>(1 / std::sqrt(1 - std::pow(options.beta2, t)));
    rule.keep = static_cast<float>(1 - learning_rate * options.weight_decay);
  }
  return rule;
}

const OptimizerKernels& optimizer_kernels(InstructionSet set) {
  switch (set) {
#if defined(__x86_64__)
    case InstructionSet::avx512:
      return optimizer_kernels_avx512();
    case InstructionSet::avx2:
      return optimizer_kernels_avx2();
#endif
    default:
      return optimizer_kernels_portable();
  }
}

bool uses_first_moment(const OptimizerOptions& options) {
  return options.kind == OptimizerKind::momentum || options.kind == OptimizerKind::adam ||
         options.kind == OptimizerKind::adamw;
}

bool uses_second_moment(const OptimizerOptions& options) {
  return options.kind == OptimizerKind::adagrad || options.kind == OptimizerKind::adam ||
         options.kind == OptimizerKind::adamw;
}

bool needs_catch_up(const OptimizerOptions& options) {
  switch (options.kind) {
    case OptimizerKind::momentum:
      return true;
    case OptimizerKind::adam:
      return false;
    default:
      return options.weight_decay != 0;
  }
}

InitialMoments initial_moments(const OptimizerOptions& options) {
  return {0.0F,
          options.kind == OptimizerKind::adagrad ? static_cast<float>(options.initial_accumulator) : 0.0F};
}

StepHistory::StepHistory(int64_t step, std::vector<double> rates)
    : step_(step), first_(step + 1 - static_cast<int64_t>(rates.size())), rates_(std::move(rates)) {}

void StepHistory::advance(double learning_rate) {
  ++step_;
  rates_.push_back(learning_rate);
}

void StepHistory::forget() {
  if (rates_.empty()) return;
  rates_.erase(rates_.begin(), rates_.end() - 1);
  first_ = step_;
}

void update(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
            std::span<const float> gradient, float scale, ThreadPool& pool) {
  check_moments(options, slot);
  assert(gradient.size() == slot.value.size());
  const UpdateRule rule = make_rule(options, history.step(), history.learning_rate(), scale);
  const auto count = static_cast<int64_t>(gradient.size());
  pool.run(divide_up(count, kPiece), [&](int64_t item, int) {
    const int64_t first = item * kPiece;
    active().update(rule, range_of(slot, gradient.data() + first, first, std::min(kPiece, count - first)));
  });
}

void update_rows(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
                 const RowGradients<float>& gradient, int64_t offset, float scale, ThreadPool& pool) {
  check_moments(options, slot);
  const bool lags = needs_catch_up(options);
  const int64_t now = history.step();
  const CatchUp catch_up(options, history, slot, now - 1,
                         lags ? oldest_stamp(slot, gradient.rows, now - 1) : now - 1);
  const UpdateRule rule = make_rule(options, now, history.learning_rate(), scale);
  for_rows(static_cast<int64_t>(gradient.rows.size()), slot.width, pool, [&](int64_t i) {
    const int64_t row = gradient.rows[static_cast<size_t>(i)];
    if (lags) catch_up.run(row);
    active().update(rule, range_of(slot, gradient.values.data() + i * gradient.width + offset,
                                   row * slot.width, slot.width));
    if (lags) slot.stamps[static_cast<size_t>(row)] = now;
  });
}

void catch_up(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
              std::span<const int64_t> rows, ThreadPool& pool) {
  if (!needs_catch_up(options)) return;
  check_moments(options, slot);
  const CatchUp catch_up(options, history, slot, history.step(), oldest_stamp(slot, rows, history.step()));
  for_rows(static_cast<int64_t>(rows.size()), slot.width, pool,
           [&](int64_t i) { catch_up.run(rows[static_cast<size_t>(i)]); });
}

void catch_up_all(const OptimizerOptions& options, const StepHistory& history, const OptimizerSlot& slot,
                  ThreadPool& pool) {
  if (!needs_catch_up(options) || slot.stamps.empty()) return;
  check_moments(options, slot);
  const int64_t oldest = *std::min_element(slot.stamps.begin(), slot.stamps.end());
  const CatchUp catch_up(options, history, slot, history.step(), oldest);
  for_rows(static_cast<int64_t>(slot.stamps.size()), slot.width, pool,
           [&](int64_t row) { catch_up.run(row); });
}

double sum_of_squares(std::span<const float> x, ThreadPool& pool) {
  const auto count = static_cast<int64_t>(x.size());
  std::vector<double> pieces(static_cast<size_t>(divide_up(count, kPiece)));
  pool.run(static_cast<int64_t>(pieces.size()), [&](int64_t item, int) {
    const int64_t first = item * kPiece;
    pieces[static_cast<size_t>(item)] =
        active().sum_of_squares(x.data() + first, std::min(kPiece, count - first));
  });
  return std::accumulate(pieces.begin(), pieces.end(), 0.0);
}

}  // namespace hsm::kernels
