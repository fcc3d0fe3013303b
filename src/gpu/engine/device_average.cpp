#include "gpu/engine/device_average.h"

#include <ATen/ATen.h>

#include <span>

namespace hsm {
namespace {

at::Tensor tensor_of(std::span<float> host, const at::Tensor& like) {
  return at::from_blob(host.data(), like.sizes());
}

}  // namespace

DeviceAverage::DeviceAverage(DeviceParameters& parameters, ThreadPool& pool,
                             kernels::device::DeviceKernels& kernels)
    : parameters_(parameters), kernels_(kernels), image_(parameters.image(), pool) {}

void DeviceAverage::allocate() {
  if (!means_.empty()) return;
  for (const DeviceParameter& parameter : parameters_.all()) {
    means_.push_back(at::empty(parameter.value.sizes(), parameter.value.options()));
  }
}

void DeviceAverage::start(int64_t updates) {
  image_.start();
  before_ = updates;
  allocate();
}

void DeviceAverage::add(const kernels::device::StepOutcome* outcome) {
  for (size_t i = 0; i < means_.size(); ++i) {
    const at::Tensor& value = parameters_.all()[i].value;
    kernels_.average({outcome, before_, value.const_data_ptr<float>(), means_[i].mutable_data_ptr<float>()},
                     value.numel());
  }
}

void DeviceAverage::download(int64_t updates) {
  image_.stand_at(updates - before_);
  if (empty(updates)) return;
  for (size_t i = 0; i < means_.size(); ++i) tensor_of(image_.mean(i), means_[i]).copy_(means_[i]);
}

WeightView DeviceAverage::weights(int64_t updates) {
  download(updates);
  return image_.view();
}

void DeviceAverage::append_state(int64_t updates, std::vector<StateTensor>& tensors) {
  if (!running()) return;
  download(updates);
  image_.append_state(tensors);
}

void DeviceAverage::restore(const Checkpoint& checkpoint, int64_t updates) {
  image_.restore(checkpoint);
  if (!running()) return;
  before_ = updates - image_.steps();
  allocate();
  if (image_.empty()) return;
  for (size_t i = 0; i < means_.size(); ++i) means_[i].copy_(tensor_of(image_.mean(i), means_[i]));
}

}  // namespace hsm
