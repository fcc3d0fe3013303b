#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <map>
#include <span>
#include <string>
#include <vector>

#include "base/random.h"
#include "classes/word_classes.h"
#include "model/inference_model.h"
#include "model/model_shape.h"

namespace hsm {

using Doubles = std::vector<double>;

/// A language model in double precision, written for clarity, a word at a time, straight from the formulas.
/// Its weights are floats, so that a model in single precision can share them.
class ModelOracle {
 public:
  /// Weights drawn uniformly from ±range.
  ModelOracle(ModelShape shape, HeadLayout layout, uint64_t seed, double range = 0.5)
      : shape_(std::move(shape)), layout_(std::move(layout)) {
    const CounterRandom random(seed, Purpose::initialization);
    uint64_t tensor = 0;
    for (const TensorSpec& spec : parameter_specs(shape_)) {
      int64_t count = 1;
      for (const int64_t extent : spec.shape) count *= extent;
      std::vector<float>& values = weights_[spec.name];
      for (int64_t i = 0; i < count; ++i) {
        values.push_back(
            static_cast<float>((2 * random.uniform(tensor, static_cast<uint64_t>(i)) - 1) * range));
      }
      ++tensor;
    }
  }

  [[nodiscard]] const ModelShape& shape() const { return shape_; }
  [[nodiscard]] const HeadLayout& layout() const { return layout_; }
  [[nodiscard]] WeightView weight_view() const {
    WeightView view;
    for (const TensorSpec& spec : parameter_specs(shape_))
      view.tensors.push_back(weights_.at(spec.name).data());
    return view;
  }

  [[nodiscard]] Doubles zero_state() const { return Doubles(static_cast<size_t>(shape_.state_size())); }

  /// Reads one word, replaces the state (layer by layer h, then c for an LSTM) and returns what the head
  /// reads.
  Doubles step(int32_t word, Doubles& state) const {
    Doubles x = row(shape_.tied ? "head.word.weight" : "embedding.weight", row_of(word));
    size_t offset = 0;
    for (size_t layer = 0; layer < shape_.hidden.size(); ++layer) {
      const auto hidden = static_cast<size_t>(shape_.hidden[layer]);
      const std::string suffix = "_l" + std::to_string(layer);
      const Doubles h = slice(state, offset, hidden);
      const Doubles from_input = affine("rnn.weight_ih" + suffix, "rnn.bias_ih" + suffix, x);
      const Doubles from_hidden = affine("rnn.weight_hh" + suffix, "rnn.bias_hh" + suffix, h);
      for (size_t unit = 0; unit < hidden; ++unit) {
        update_unit(from_input, from_hidden, hidden, unit, state.data() + offset);
      }
      x = slice(state, offset, hidden);
      offset += shape_.cell == Cell::lstm ? 2 * hidden : hidden;
    }
    return shape_.has_projection() ? affine("projection.weight", "", x) : x;
  }

  /// log P(word | head input) of every word by public id, by the two-level formula.
  [[nodiscard]] Doubles log_probs(const Doubles& head) const {
    const auto shortlist = static_cast<size_t>(layout_.shortlist());
    const Doubles word_logits = affine("head.word.weight", "head.word.bias", head);
    Doubles root = slice(word_logits, 0, shortlist);
    for (const double logit : affine("head.cluster.weight", "head.cluster.bias", head)) root.push_back(logit);
    const Doubles root_log_probs = log_softmax(root);

    Doubles by_row = slice(root_log_probs, 0, shortlist);
    for (size_t cluster = 0; cluster + 1 < layout_.cluster_offsets.size(); ++cluster) {
      const auto first = static_cast<size_t>(layout_.cluster_offsets[cluster]);
      const auto last = static_cast<size_t>(layout_.cluster_offsets[cluster + 1]);
      for (const double leaf : log_softmax(slice(word_logits, first, last - first))) {
        by_row.push_back(root_log_probs[shortlist + cluster] + leaf);
      }
    }
    Doubles by_word(by_row.size());
    for (size_t word = 0; word < by_word.size(); ++word)
      by_word[word] = by_row[row_of(static_cast<int32_t>(word))];
    return by_word;
  }

 private:
  static double sigmoid(double x) { return 1 / (1 + std::exp(-x)); }
  static Doubles slice(const Doubles& values, size_t first, size_t count) {
    return {values.begin() + static_cast<std::ptrdiff_t>(first),
            values.begin() + static_cast<std::ptrdiff_t>(first + count)};
  }
  static Doubles log_softmax(Doubles logits) {
    if (logits.empty()) return logits;
    const double largest = *std::ranges::max_element(logits);
    double sum = 0;
    for (const double logit : logits) sum += std::exp(logit - largest);
    for (double& logit : logits) logit -= largest + std::log(sum);
    return logits;
  }

  [[nodiscard]] size_t row_of(int32_t word) const {
    return static_cast<size_t>(layout_.row_of_word[static_cast<size_t>(word)]);
  }

  [[nodiscard]] Doubles row(const std::string& matrix, size_t index) const {
    const std::vector<float>& values = weights_.at(matrix);
    const auto width = static_cast<size_t>(shape_.embedding);
    return {values.begin() + static_cast<std::ptrdiff_t>(index * width),
            values.begin() + static_cast<std::ptrdiff_t>((index + 1) * width)};
  }

  /// W·x + b; no bias when its name is empty.
  [[nodiscard]] Doubles affine(const std::string& matrix, const std::string& bias, const Doubles& x) const {
    const std::vector<float>& values = weights_.at(matrix);
    Doubles y(values.size() / x.size());
    for (size_t i = 0; i < y.size(); ++i) {
      y[i] = bias.empty() ? 0 : double{weights_.at(bias)[i]};
      for (size_t j = 0; j < x.size(); ++j) y[i] += double{values[i * x.size() + j]} * x[j];
    }
    return y;
  }

  /// torch's formulas for one unit of a layer; `state` holds the layer's h, then c.
  void update_unit(const Doubles& from_input, const Doubles& from_hidden, size_t hidden, size_t unit,
                   double* state) const {
    const auto both = [&](size_t gate) {
      return from_input[gate * hidden + unit] + from_hidden[gate * hidden + unit];
    };
    double& h = state[unit];
    switch (shape_.cell) {
      case Cell::lstm: {
        double& c = state[hidden + unit];
        c = sigmoid(both(1)) * c + sigmoid(both(0)) * std::tanh(both(2));
        h = sigmoid(both(3)) * std::tanh(c);
        break;
      }
      case Cell::gru: {
        const double reset = sigmoid(both(0));
        const double update = sigmoid(both(1));
        const double candidate =
            std::tanh(from_input[2 * hidden + unit] + reset * from_hidden[2 * hidden + unit]);
        h = (1 - update) * candidate + update * h;
        break;
      }
      case Cell::rnn_tanh:
        h = std::tanh(both(0));
        break;
      case Cell::rnn_relu:
        h = std::max(0.0, both(0));
        break;
    }
  }

  ModelShape shape_;
  HeadLayout layout_;
  std::map<std::string, std::vector<float>> weights_;
};

}  // namespace hsm
