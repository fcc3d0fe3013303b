#include "gpu/engine/decode_rows.h"

#include <algorithm>

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr std::string_view kStates = "GPU states";
constexpr std::string_view kLayers = "GPU layer scratch";
constexpr std::string_view kRoot = "GPU root scores";
constexpr std::string_view kExpansions = "GPU leaf scores";
constexpr std::string_view kRows = "GPU rows";

int64_t most_products(const ModelShape& shape) {
  return shape.gates() * *std::ranges::max_element(shape.hidden);
}

int64_t most_parts(const DecodeModel& model) {
  int64_t most = model.kernels->root_parts(model.shape.head_dim());
  for (const int64_t hidden : model.shape.hidden) {
    most = std::max(most, model.kernels->root_parts(model.shape.gates() * hidden));
  }
  return most;
}

dev::ExpansionMemory take_expansion(DeviceArena& device, int64_t capacity, int64_t largest_cluster) {
  dev::ExpansionMemory memory;
  memory.capacity = std::clamp<int64_t>(capacity, 1, dev::kMostPairs);
  memory.pair = device.take<dev::Ranked>(memory.capacity, kExpansions);
  memory.pair_count = device.take<int32_t>(memory.capacity, kExpansions);
  memory.order = device.take<int32_t>(memory.capacity, kExpansions);
  memory.item_start = device.take<int32_t>(memory.capacity + 1, kExpansions);
  memory.item_count = device.take<int32_t>(1, kExpansions);
  memory.leaf_logit = device.take<float>(memory.capacity * largest_cluster, kExpansions);
  memory.leaf_part = device.take<dev::LogSum<float>>(memory.capacity, kExpansions);
  return memory;
}

}  // namespace

DecodeRows::DecodeRows(Arena& host, DeviceArena& device, const DecodeModel& model, const WordFilter& filter,
                       const EngineLimits& limits)
    : model_(&model),
      max_rows_(limits.rows),
      head_(model.head),
      states_{take_states(device, max_rows_ + 1), take_states(device, max_rows_ + 1)},
      embedded_(device.take<float>(max_rows_ * model.shape.embedding, kLayers)),
      input_products_(device.take<float>(max_rows_ * most_products(model.shape), kLayers)),
      state_products_(device.take<float>(max_rows_ * most_products(model.shape), kLayers)),
      parts_(device.take<dev::LogSum<float>>(max_rows_ * most_parts(model), kLayers)),
      projected_(device.take<float>(model.projection != nullptr ? max_rows_ * model.head.dim : 0, kLayers)),
      expansion_(take_expansion(device, limits.expansions, model.head.largest_cluster)),
      tokens_(max_rows_),
      token_memory_(host, device, tokens_.layout, "rows", kRows),
      sources_(host.take<int32_t>(max_rows_, "rows")),
      device_sources_(device.take<int32_t>(max_rows_, kRows)),
      stepped_(host.take<int32_t>(max_rows_, "rows")) {
  root_.logit = device.take<float>(max_rows_ * head_.root(), kRoot);
  root_.part = device.take<dev::LogSum<float>>(max_rows_ * model.kernels->root_parts(head_.root()), kRoot);
  auto* forbidden = device.take<uint64_t>((head_.words + 63) / 64, "GPU word filter");
  if (device.measuring()) return;
  // Bit w % 32 of the 32-bit word w / 32 is bit w % 64 of the 64-bit word w / 64: the lower half comes first.
  model.kernels->upload(filter.bits().data(), static_cast<int64_t>(filter.bits().size_bytes()), forbidden);
  head_.forbidden = reinterpret_cast<const uint32_t*>(forbidden);
}

DeviceStates DecodeRows::take_states(DeviceArena& device, int64_t rows) const {
  const ModelShape& shape = model_->shape;
  DeviceStates states;
  for (const int64_t hidden : shape.hidden) {
    states.parts.push_back(device.take<float>(rows * hidden, kStates));
    if (shape.cell == Cell::lstm) states.parts.push_back(device.take<float>(rows * hidden, kStates));
  }
  return states;
}

// The buffers' last row, which no step writes, is the zero state.
void DecodeRows::copy_states(const DeviceStates& from, std::span<const int32_t> rows, const DeviceStates& to,
                             int64_t first) {
  const auto sources = sources_.first(rows.size());
  std::ranges::transform(rows, sources.begin(), [&](int32_t row) {
    return row == kZeroState ? static_cast<int32_t>(max_rows_) : row;
  });
  kernels().upload(sources.data(), static_cast<int64_t>(sources.size_bytes()), device_sources_);
  const bool two = model_->shape.cell == Cell::lstm;
  for (size_t part = 0; part < from.parts.size(); ++part) {
    const int64_t width = model_->shape.hidden[two ? part / 2 : part];
    kernels().gather_rows(from.parts[part], width, device_sources_, static_cast<int64_t>(rows.size()),
                          to.parts[part] + first * width);
  }
}

void DecodeRows::step(std::span<const RowSource> sources, int64_t scored) {
  const auto rows = stepped_.first(sources.size());
  std::ranges::transform(sources, rows.begin(), &RowSource::row);
  copy_states(current(), rows, spare(), 0);
  std::ranges::transform(sources, rows.begin(), &RowSource::token);
  feed(spare(), rows, scored);
  current_ = 1 - current_;
}

void DecodeRows::feed(const DeviceStates& states, std::span<const int32_t> tokens, int64_t scored) {
  const auto rows = static_cast<int64_t>(tokens.size());
  for (size_t i = 0; i < tokens.size(); ++i) {
    const bool fed = tokens[i] != kCarried;
    token_memory_.host(tokens_.row)[i] = fed ? model_->row_of(tokens[i]) : 0;
    token_memory_.host(tokens_.fed)[i] = fed ? 1 : 0;
  }
  token_memory_.upload(kernels());
  const ModelShape& shape = model_->shape;
  kernels().gather_rows(model_->embedding, shape.embedding, token_memory_.device(tokens_.row), rows,
                        embedded_);
  const float* x = embedded_;
  size_t part = 0;
  for (size_t l = 0; l < shape.hidden.size(); ++l) {
    const DecodeModel::Layer& layer = model_->layers[l];
    const int64_t hidden = shape.hidden[l];
    const int64_t products = shape.gates() * hidden;
    float* h = states.parts[part++];
    float* c = shape.cell == Cell::lstm ? states.parts[part++] : nullptr;
    kernels().linear({rows, shape.layer_input(l), products, x, layer.input_weight, layer.input_bias,
                      input_products_, parts_});
    kernels().linear(
        {rows, hidden, products, h, layer.state_weight, layer.state_bias, state_products_, parts_});
    kernels().cell_step(
        {shape.cell, hidden, input_products_, state_products_, token_memory_.device(tokens_.fed), h, c},
        rows);
    x = h;
  }
  if (model_->projection != nullptr) {
    kernels().linear(
        {rows, shape.hidden.back(), head_.dim, x, model_->projection, model_->no_bias, projected_, parts_});
    x = projected_;
  }
  root_.rows = scored;
  root_.hidden = x;
  kernels().root_scores(head_, root_);
}

dev::RootRows DecodeRows::root(int64_t first, int64_t count) const {
  return root_.from(first, count, head_, kernels().root_parts(head_.root()));
}

}  // namespace hsm
