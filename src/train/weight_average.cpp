#include "train/weight_average.h"

#include <algorithm>

namespace hsm {
namespace {

constexpr const char* kSteps = "average.steps";
constexpr size_t kTile = size_t{1} << 14;

}  // namespace

WeightAverage::WeightAverage(std::span<const Parameter> parameters, ThreadPool& pool)
    : parameters_(parameters), pool_(pool) {}

void WeightAverage::allocate() {
  if (!means_.empty()) return;
  for (const Parameter& parameter : parameters_) means_.emplace_back(parameter.value.size());
}

void WeightAverage::add() {
  allocate();
  ++steps_;
  const auto share = static_cast<float>(1.0 / static_cast<double>(std::max<int64_t>(1, steps_ - 1)));
  for (size_t p = 0; p < means_.size(); ++p) {
    const std::span<const float> value = parameters_[p].value;
    std::vector<float>& mean = means_[p];
    const size_t tiles = (mean.size() + kTile - 1) / kTile;
    pool_.run(static_cast<int64_t>(tiles), [&](int64_t tile, int /*worker*/) {
      const size_t first = static_cast<size_t>(tile) * kTile;
      const size_t last = std::min(mean.size(), first + kTile);
      if (share == 1) {
        std::copy(value.begin() + static_cast<int64_t>(first), value.begin() + static_cast<int64_t>(last),
                  mean.begin() + static_cast<int64_t>(first));
        return;
      }
      for (size_t i = first; i < last; ++i) mean[i] += share * (value[i] - mean[i]);
    });
  }
}

WeightView WeightAverage::view() const {
  WeightView view;
  for (const std::vector<float>& mean : means_) view.tensors.push_back(mean.data());
  return view;
}

std::span<float> WeightAverage::mean(size_t parameter) {
  return means_.empty() ? std::span<float>() : std::span<float>(means_[parameter]);
}

void WeightAverage::stand_at(int64_t steps) {
  steps_ = steps;
  if (!empty()) allocate();
}

void WeightAverage::append_state(std::vector<StateTensor>& tensors) {
  if (!running_) return;
  tensors.push_back({kSteps, DType::i64, {1}, &steps_});
  if (empty()) return;
  for (size_t p = 0; p < means_.size(); ++p) {
    tensors.push_back({"average." + parameters_[p].name, DType::f32, parameters_[p].shape, means_[p].data()});
  }
}

void WeightAverage::restore(const Checkpoint& checkpoint) {
  running_ = checkpoint.file.find(kSteps) != nullptr;
  if (!running_) return;
  checkpoint.restore(std::vector<StateTensor>{{kSteps, DType::i64, {1}, &steps_}});
  if (empty()) return;
  allocate();
  std::vector<StateTensor> tensors;
  append_state(tensors);
  checkpoint.restore(tensors);
}

}  // namespace hsm
