#include "gpu/engine/device_parameters.h"

#include <ATen/ATen.h>

#include <numeric>
#include <span>

namespace hsm {
namespace {

bool is_sparse(const std::string& name) {
  return name == "embedding.weight" || name.starts_with("head.word.");
}

std::vector<std::vector<float>> initial_values(const std::vector<TensorSpec>& specs, const Config& config) {
  std::vector<std::vector<float>> values;
  for (size_t i = 0; i < specs.size(); ++i) {
    const int64_t count =
        std::accumulate(specs[i].shape.begin(), specs[i].shape.end(), int64_t{1}, std::multiplies<>());
    draw_initial_values(i, initial_range(config.model, specs[i].name), config.train.seed,
                        values.emplace_back(static_cast<size_t>(count)));
  }
  return values;
}

std::vector<Parameter> image_of(const std::vector<TensorSpec>& specs, std::vector<std::vector<float>>& values,
                                const kernels::RowGradients<float>& rows) {
  std::vector<Parameter> parameters;
  for (size_t i = 0; i < specs.size(); ++i) {
    parameters.push_back(
        {specs[i].name, specs[i].shape, values[i], {}, is_sparse(specs[i].name) ? &rows : nullptr, 0});
  }
  return parameters;
}

at::Tensor tensor_of(std::span<float> host, const at::Tensor& like) {
  return at::from_blob(host.data(), like.sizes());
}

// Between a moment and its image, if there is one.
void download(const at::Tensor& device, std::span<float> host) {
  if (device.defined()) tensor_of(host, device).copy_(device);
}
void upload(std::span<float> host, at::Tensor& device) {
  if (device.defined()) device.copy_(tensor_of(host, device));
}

}  // namespace

DeviceParameters::DeviceParameters(const Config& config, const ModelShape& shape, ThreadPool& pool,
                                   const at::TensorOptions& options)
    : separate_copies_(options.dtype() != at::kFloat),
      host_values_(initial_values(parameter_specs(shape), config)),
      host_parameters_(image_of(parameter_specs(shape), host_values_, no_rows_)),
      optimizer_(config.train.optimizer, config.train.clip_norm, host_parameters_, pool) {
  const at::TensorOptions floats = options.dtype(at::kFloat);
  int64_t dense = 0;
  for (size_t i = 0; i < host_parameters_.size(); ++i) {
    const Parameter& image = host_parameters_[i];
    DeviceParameter parameter;
    parameter.name = image.name;
    parameter.value = at::empty(image.shape, floats);
    parameter.compute = separate_copies_ ? at::empty(image.shape, options) : parameter.value;
    if (!optimizer_.first_moment(i).empty()) parameter.first = at::empty(image.shape, floats);
    if (!optimizer_.second_moment(i).empty()) parameter.second = at::empty(image.shape, floats);
    parameter.sparse = image.rows != nullptr;
    if (!parameter.sparse) dense += parameter.value.numel();
    all_.push_back(std::move(parameter));
  }
  gradients_ = at::zeros({dense}, floats);
  int64_t next = 0;
  for (DeviceParameter& parameter : all_) {
    if (parameter.sparse) continue;
    parameter.gradient = gradients_.narrow(0, next, parameter.value.numel()).view(parameter.value.sizes());
    next += parameter.value.numel();
  }
  upload();
}

void DeviceParameters::upload() {
  for (size_t i = 0; i < all_.size(); ++i) {
    DeviceParameter& parameter = all_[i];
    parameter.value.copy_(tensor_of(host_values_[i], parameter.value));
    if (separate_copies_) parameter.compute.detach().copy_(parameter.value);
    hsm::upload(optimizer_.first_moment(i), parameter.first);
    hsm::upload(optimizer_.second_moment(i), parameter.second);
  }
}

WeightView DeviceParameters::weights() {
  WeightView view;
  for (size_t i = 0; i < all_.size(); ++i) {
    tensor_of(host_values_[i], all_[i].value).copy_(all_[i].value);
    view.tensors.push_back(host_values_[i].data());
  }
  return view;
}

void DeviceParameters::append_state(int64_t updates, std::vector<StateTensor>& tensors) {
  weights();
  for (size_t i = 0; i < all_.size(); ++i) {
    download(all_[i].first, optimizer_.first_moment(i));
    download(all_[i].second, optimizer_.second_moment(i));
    const Parameter& image = host_parameters_[i];
    tensors.push_back({"parameter." + image.name, DType::f32, image.shape, image.value.data()});
  }
  optimizer_.stand_at(updates);
  optimizer_.append_state(tensors);
}

void DeviceParameters::restore(const Checkpoint& checkpoint) {
  std::vector<StateTensor> tensors;
  for (const Parameter& image : host_parameters_) {
    tensors.push_back({"parameter." + image.name, DType::f32, image.shape, image.value.data()});
  }
  checkpoint.restore(tensors);
  optimizer_.restore(checkpoint);
  optimizer_.catch_up_all();  // rows that an engine on the CPU has put off
  upload();
}

}  // namespace hsm
