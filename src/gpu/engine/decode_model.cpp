#include "gpu/engine/decode_model.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "base/error.h"

namespace hsm {
namespace {

template <class T>
at::Tensor copy_of(const std::vector<T>& values, at::ScalarType type, at::Device device) {
  const at::Tensor host =
      at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())}, type);
  return at::empty(host.sizes(), at::TensorOptions().device(device).dtype(type)).copy_(host);
}

}  // namespace

DecodeModel::DecodeModel(const ModelShape& model_shape, const HeadLayout& head_layout, const WeightView& view,
                         int32_t end_symbol, at::Device place,
                         std::shared_ptr<kernels::device::DecodeKernels> there)
    : shape(model_shape),
      layout(&head_layout),
      end_of_sentence(end_symbol),
      device(place),
      kernels(std::move(there)) {
  const int64_t end_row = layout->row_of_word[static_cast<size_t>(end_symbol)];
  if (end_row >= layout->shortlist()) {
    throw UsageError(
        "decoding on a GPU needs the end symbol among the words of the root, and this model has it "
        "in a cluster; use the device cpu");
  }
  std::map<std::string, const float*> by_name;
  const auto specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) by_name[specs[i].name] = upload(view.tensors[i], specs[i].shape);

  embedding = by_name.at(shape.tied ? "head.word.weight" : "embedding.weight");
  for (size_t l = 0; l < shape.hidden.size(); ++l) {
    const std::string suffix = "_l" + std::to_string(l);
    layers.push_back({by_name.at("rnn.weight_ih" + suffix), by_name.at("rnn.weight_hh" + suffix),
                      by_name.at("rnn.bias_ih" + suffix), by_name.at("rnn.bias_hh" + suffix)});
  }
  if (shape.has_projection()) {
    projection = by_name.at("projection.weight");
    const std::vector<float> zeros(static_cast<size_t>(shape.head_dim()));
    no_bias = upload(zeros.data(), {shape.head_dim()});
  }
  head.words = layout->words();
  head.shortlist = layout->shortlist();
  head.clusters = layout->clusters();
  head.dim = shape.head_dim();
  for (int64_t c = 0; c < head.clusters; ++c) {
    head.largest_cluster = std::max(head.largest_cluster, cluster_words(c));
  }
  head.end_row = static_cast<int32_t>(end_row);
  head.word = by_name.at("head.word.weight");
  head.word_bias = by_name.at("head.word.bias");
  head.cluster = by_name.at("head.cluster.weight");
  head.cluster_bias = by_name.at("head.cluster.bias");
  memory_.push_back(copy_of(layout->cluster_offsets, at::kLong, device));
  head.cluster_offsets = memory_.back().const_data_ptr<int64_t>();
  memory_.push_back(copy_of(layout->word_of_row, at::kInt, device));
  head.word_of_row = memory_.back().const_data_ptr<int32_t>();
}

const float* DecodeModel::upload(const float* values, const std::vector<int64_t>& size) {
  const at::Tensor host = at::from_blob(const_cast<float*>(values), size, at::kFloat);
  memory_.push_back(at::empty(size, at::TensorOptions().device(device).dtype(at::kFloat)).copy_(host));
  return memory_.back().const_data_ptr<float>();
}

uint64_t DecodeModel::bytes() const {
  uint64_t bytes = 0;
  for (const at::Tensor& tensor : memory_) bytes += static_cast<uint64_t>(tensor.nbytes());
  return bytes;
}

DecodeModel::Place DecodeModel::place(int32_t word) const {
  const auto row = layout->row_of_word[static_cast<size_t>(word)];
  const int32_t cluster = layout->cluster_of_row[static_cast<size_t>(row)];
  if (cluster == kShortlist) return {static_cast<int32_t>(row)};
  const auto column = static_cast<int32_t>(layout->shortlist()) + cluster;
  if (cluster_words(cluster) == 1) return {column};
  return {column, cluster, static_cast<int32_t>(row - layout->cluster_offsets[static_cast<size_t>(cluster)])};
}

int32_t DecodeModel::row_of(int32_t word) const {
  if (word < 0 || word >= layout->words()) {
    throw DataError("word " + std::to_string(word) + " is not in the vocabulary, which has " +
                    std::to_string(layout->words()));
  }
  return static_cast<int32_t>(layout->row_of_word[static_cast<size_t>(word)]);
}

int64_t DecodeModel::cluster_words(int64_t cluster) const {
  const auto c = static_cast<size_t>(cluster);
  return layout->cluster_offsets[c + 1] - layout->cluster_offsets[c];
}

int64_t DecodeModel::ragged_clusters() const {
  int64_t count = 0;
  for (int64_t c = 0; c < head.clusters; ++c) count += cluster_words(c) > 1 ? 1 : 0;
  return count;
}

}  // namespace hsm
