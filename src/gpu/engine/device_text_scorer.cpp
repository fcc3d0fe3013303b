#include "gpu/engine/device_text_scorer.h"

#include <ATen/ATen.h>
#include <c10/core/GradMode.h>

#include <algorithm>
#include <string>
#include <utility>

#include "base/error.h"
#include "gpu/engine/window_rows.h"

namespace hsm {
namespace {

namespace dev = kernels::device;

constexpr int64_t kMostTokens = 8192;  // of a window: bounds the memory of activations and of the head
constexpr int64_t kMostStreams = 256;  // sentences side by side

std::vector<at::Tensor> recurrent(const ModelShape& shape, const std::vector<at::Tensor>& weights) {
  const auto specs = parameter_specs(shape);
  std::vector<at::Tensor> found;
  for (size_t i = 0; i < specs.size(); ++i) {
    // A copy, since cuDNN wants these in one piece.
    if (specs[i].name.starts_with("rnn.")) found.push_back(weights[i].clone());
  }
  return found;
}

template <class T>
at::Tensor upload(const std::vector<T>& values, at::ScalarType type, const at::Tensor& like) {
  const at::Tensor host =
      at::from_blob(const_cast<T*>(values.data()), {static_cast<int64_t>(values.size())}, type);
  return at::empty(host.sizes(), like.options().dtype(type)).copy_(host);
}

}  // namespace

void DeviceTextScorer::Window::clear(int64_t stream_count) {
  steps = 0;
  streams = stream_count;
  inputs.clear();
  targets.clear();
  scores.clear();
}

void DeviceTextScorer::Window::add(int32_t input, int32_t target, TokenScore* score) {
  inputs.push_back(input);
  targets.push_back(target);
  scores.push_back(score);
}

DeviceTextScorer::DeviceTextScorer(const ModelShape& shape, const HeadLayout& layout,
                                   std::vector<at::Tensor> weights,
                                   std::shared_ptr<dev::DeviceKernels> kernels, int32_t end_of_sentence)
    : shape_(shape),
      layout_(&layout),
      weights_(std::move(weights)),
      kernels_(std::move(kernels)),
      end_of_sentence_(end_of_sentence),
      largest_cluster_(largest_cluster(layout)),
      layers_(shape, recurrent(shape, weights_), false) {
  cluster_offsets_ = upload(layout.cluster_offsets, at::kLong, weights_.front());
  cluster_of_row_ = upload(layout.cluster_of_row, at::kInt, weights_.front());
}

StreamState DeviceTextScorer::start() const {
  return {std::vector<float>(static_cast<size_t>(shape_.state_size())), end_of_sentence_};
}

int32_t DeviceTextScorer::row_of(int32_t word) const {
  if (word < 0 || word >= layout_->words()) {
    throw DataError("word " + std::to_string(word) + " is not in the vocabulary, which has " +
                    std::to_string(layout_->words()));
  }
  return static_cast<int32_t>(layout_->row_of_word[static_cast<size_t>(word)]);
}

const at::Tensor& DeviceTextScorer::weight(const std::string& name) const {
  const auto specs = parameter_specs(shape_);
  size_t i = 0;
  while (specs[i].name != name) ++i;
  return weights_[i];
}

void DeviceTextScorer::score_stream(std::span<const int32_t> words, StreamState& state,
                                    std::span<TokenScore> scores) {
  layers_.set_states(at::from_blob(state.state.data(), {1, shape_.state_size()}, at::kFloat));
  window_.clear(1);
  for (size_t place = 0; place < words.size(); ++place) {
    window_.add(row_of(state.last), row_of(words[place]), &scores[place]);
    state.last = words[place];
    if (++window_.steps == kMostTokens) run_window();
  }
  run_window();
  at::from_blob(state.state.data(), {1, shape_.state_size()}, at::kFloat).copy_(layers_.states());
}

void DeviceTextScorer::score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                                       std::span<TokenScore> scores) {
  std::vector<Sentence> sentences;
  int64_t first = 0;
  for (const int64_t length : lengths) {
    if (length > 0) sentences.push_back({first, length});
    first += length;
  }
  // Of like length side by side, so that few places of a window stay empty.
  std::ranges::stable_sort(sentences, std::greater<>(), &Sentence::length);
  for (size_t at = 0; at < sentences.size(); at += kMostStreams) {
    const size_t count = std::min<size_t>(kMostStreams, sentences.size() - at);
    score_group(std::span(sentences).subspan(at, count), words, scores);
  }
}

void DeviceTextScorer::score_group(std::span<const Sentence> group, std::span<const int32_t> words,
                                   std::span<TokenScore> scores) {
  const auto streams = static_cast<int64_t>(group.size());
  layers_.begin_window(streams, true);
  window_.clear(streams);
  for (int64_t t = 0; t < group.front().length; ++t) {
    for (const Sentence& sentence : group) {
      if (t >= sentence.length) {
        window_.add(0, -1, nullptr);
        continue;
      }
      const auto place = static_cast<size_t>(sentence.first + t);
      window_.add(row_of(t == 0 ? end_of_sentence_ : words[place - 1]), row_of(words[place]), &scores[place]);
    }
    if (++window_.steps * streams + streams > kMostTokens) run_window();
  }
  run_window();
}

// Words' vectors through the layers: what the head reads.
at::Tensor DeviceTextScorer::head_inputs(const at::Tensor& rows) {
  const at::Tensor& table = weight(shape_.tied ? "head.word.weight" : "embedding.weight");
  at::Tensor x = at::empty({window_.steps, window_.streams, shape_.embedding}, table.options());
  kernels_->gather_rows(table.const_data_ptr(), shape_.embedding, rows.const_data_ptr<int32_t>(), nullptr,
                        rows.numel(), x.mutable_data_ptr());
  const at::Tensor y = layers_.forward(x, {0, window_.streams}, nullptr).contiguous();
  const at::Tensor outputs = y.view({rows.numel(), shape_.hidden.back()});
  return shape_.has_projection() ? at::mm(outputs, weight("projection.weight").t()).contiguous() : outputs;
}

void DeviceTextScorer::run_window() {
  if (window_.steps == 0) return;
  const c10::NoGradGuard no_gradients;
  const auto tokens = static_cast<int64_t>(window_.inputs.size());
  const at::Tensor targets = upload(window_.targets, at::kInt, weights_.front());
  const at::Tensor hidden = head_inputs(upload(window_.inputs, at::kInt, weights_.front()));

  dev::HeadPass pass;
  pass.sizes = {tokens,
                layout_->words(),
                layout_->shortlist(),
                layout_->clusters(),
                shape_.head_dim(),
                largest_cluster_,
                0};
  const at::Tensor scratch =
      at::empty({kernels_->head_scratch_bytes(pass.sizes)}, weights_.front().options().dtype(at::kByte));
  at::Tensor total = at::empty({1}, weights_.front().options());
  at::Tensor log_probs = at::empty({2, tokens}, weights_.front().options());
  pass.hidden = hidden.const_data_ptr();
  pass.word = weight("head.word.weight").const_data_ptr();
  pass.cluster = weight("head.cluster.weight").const_data_ptr();
  pass.word_bias = weight("head.word.bias").const_data_ptr<float>();
  pass.cluster_bias = weight("head.cluster.bias").const_data_ptr<float>();
  pass.cluster_offsets = cluster_offsets_.const_data_ptr<int64_t>();
  pass.cluster_of_row = cluster_of_row_.const_data_ptr<int32_t>();
  pass.targets = targets.const_data_ptr<int32_t>();
  pass.scratch = scratch.mutable_data_ptr();
  pass.loss = total.mutable_data_ptr<float>();
  kernels_->head_scores(pass, log_probs.mutable_data_ptr<float>(),
                        log_probs.mutable_data_ptr<float>() + tokens);

  const at::Tensor host = log_probs.cpu();
  const float* root = host.const_data_ptr<float>();
  for (int64_t i = 0; i < tokens; ++i) {
    TokenScore* score = window_.scores[static_cast<size_t>(i)];
    if (score != nullptr) *score = {root[i], root[tokens + i]};
  }
  window_.clear(window_.streams);
}

std::unique_ptr<TextScorer> make_device_text_scorer(const ModelShape& shape, const HeadLayout& layout,
                                                    const WeightView& weights, at::Device device,
                                                    std::shared_ptr<dev::DeviceKernels> kernels,
                                                    int32_t end_of_sentence) {
  std::vector<at::Tensor> tensors;
  const auto specs = parameter_specs(shape);
  for (size_t i = 0; i < specs.size(); ++i) {
    const at::Tensor host = at::from_blob(const_cast<float*>(weights.tensors[i]), specs[i].shape, at::kFloat);
    tensors.push_back(
        at::empty(host.sizes(), at::TensorOptions().device(device).dtype(at::kFloat)).copy_(host));
  }
  return std::make_unique<DeviceTextScorer>(shape, layout, std::move(tensors), std::move(kernels),
                                            end_of_sentence);
}

}  // namespace hsm
