// The training step against the same model composed of LibTorch's own operations and differentiated by it.
#include "model/training_model.h"

#include <ATen/ATen.h>
#include <gtest/gtest.h>
#include <torch/csrc/autograd/autograd.h>

#include <map>
#include <string>

#include "kernels/dropout.h"

namespace hsm {
namespace {

struct Case {
  const char* name;
  const char* cell;
  std::vector<int64_t> hidden;
  int64_t embedding;
  bool tied;
  DropoutConfig dropout;
  RegularizationConfig regularization{};
};

std::ostream& operator<<(std::ostream& out, const Case& c) {
  return out << c.name;
}

constexpr int64_t kWords = 23;
constexpr int64_t kStreams = 3;
constexpr int64_t kSteps = 5;
constexpr uint64_t kSeed = 42;

ModelConfig config_of(const Case& c) {
  ModelConfig config;
  config.cell = c.cell;
  config.layers = static_cast<int64_t>(c.hidden.size());
  config.hidden = c.hidden;
  config.embedding = c.embedding;
  config.tie_embeddings = c.tied;
  config.init_range = 0.5;
  config.dropout = c.dropout;
  config.regularization = c.regularization;
  return config;
}

// 5 words at the root, clusters of 1, 3, 7 and 7 words, ids spread over them.
HeadLayout layout() {
  WordClasses classes;
  classes.clusters = 4;
  for (int32_t id = 0; id < kWords; ++id) {
    const int32_t slot = (id * 7) % 23;
    classes.cluster_of.push_back(slot < 5 ? kShortlist : slot < 6 ? 0 : slot < 9 ? 1 : slot < 16 ? 2 : 3);
  }
  return make_layout(classes);
}

Batch batch_of(bool starts) {
  Batch batch;
  batch.steps = kSteps;
  batch.streams = kStreams;
  batch.starts = starts;
  for (int64_t i = 0; i < kSteps * kStreams; ++i) {
    batch.inputs.push_back(static_cast<int32_t>(i * 5 % kWords));
    batch.targets.push_back(i == 4 ? kNoTarget : static_cast<int32_t>(i * 11 % kWords));
    if (i != 4) ++batch.target_count;
  }
  return batch;
}

// The model from torch operations: a dense softmax over all root columns, and one over each target's cluster.
class TorchModel {
 public:
  TorchModel(const Case& c, TrainingModel& model, ThreadPool& pool)
      : case_(c), shape_(model.shape()), pool_(pool) {
    for (const Parameter& p : model.parameters()) {
      tensors_[p.name] =
          at::from_blob(p.value.data(), at::IntArrayRef(p.shape)).clone().set_requires_grad(true);
      names_.push_back(p.name);
    }
    state_ = at::zeros({kStreams, shape_.state_size()});
  }

  double loss(const Batch& batch, int64_t step, const HeadLayout& head, float scale,
              std::map<std::string, at::Tensor>& gradients) {
    std::vector<int64_t> rows;
    for (const int32_t id : batch.inputs) rows.push_back(head.row_of_word[static_cast<size_t>(id)]);
    at::Tensor x = at::index_select(tensors_[case_.tied ? "head.word.weight" : "embedding.weight"], 0,
                                    at::tensor(rows, at::kLong));
    x = (x * row_mask(rows, step)).view({kSteps, kStreams, shape_.embedding});
    x = x * mask(Purpose::dropout_input, case_.dropout.input, shape_.embedding, step, 0);
    int64_t at_state = 0;
    at::Tensor next_state = state_.clone();
    for (size_t layer = 0; layer < shape_.hidden.size(); ++layer) {
      if (layer > 0) {
        x = x * mask(Purpose::dropout_hidden, case_.dropout.hidden, shape_.layer_input(layer), step,
                     static_cast<int64_t>(layer));
      }
      x = recurrent(layer, x, next_state, at_state, step);
    }
    state_ = next_state.detach();
    at::Tensor penalty = temporal_penalty(x, batch);
    x = x * mask(Purpose::dropout_output, case_.dropout.output, shape_.hidden.back(), step, 0);
    penalty = penalty + activation_penalty(x, batch);
    x = x.view({kSteps * kStreams, -1});
    if (shape_.has_projection()) x = at::matmul(x, tensors_["projection.weight"].t());

    const at::Tensor word_logits =
        at::matmul(x, tensors_["head.word.weight"].t()) + tensors_["head.word.bias"];
    const at::Tensor cluster_logits =
        at::matmul(x, tensors_["head.cluster.weight"].t()) + tensors_["head.cluster.bias"];
    const at::Tensor root =
        at::log_softmax(at::cat({word_logits.narrow(1, 0, head.shortlist()), cluster_logits}, 1), 1);
    at::Tensor sum = at::zeros({});
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      if (batch.targets[i] == kNoTarget) continue;
      const int64_t row = head.row_of_word[static_cast<size_t>(batch.targets[i])];
      const int64_t cluster = head.cluster_of_row[static_cast<size_t>(row)];
      const auto token = static_cast<int64_t>(i);
      if (cluster == kShortlist) {
        sum = sum - root[token][row];
      } else {
        const int64_t first = head.cluster_offsets[static_cast<size_t>(cluster)];
        const int64_t size = head.cluster_offsets[static_cast<size_t>(cluster) + 1] - first;
        sum = sum - root[token][head.shortlist() + cluster] -
              at::log_softmax(word_logits[token].narrow(0, first, size), 0)[row - first];
      }
    }
    std::vector<at::Tensor> inputs;
    for (const std::string& name : names_) inputs.push_back(tensors_[name]);
    const auto all =
        torch::autograd::grad({sum * scale + penalty * (scale * static_cast<double>(batch.target_count))},
                              inputs, {}, std::nullopt, false, true);
    for (size_t i = 0; i < names_.size(); ++i) {
      gradients[names_[i]] = all[i].defined() ? all[i] : at::zeros_like(inputs[i]);
    }
    return sum.item<double>();
  }

 private:
  // Which positions of the window have a target, [steps, streams].
  static at::Tensor has_target(const Batch& batch) {
    at::Tensor mask = at::zeros({kSteps, kStreams});
    for (size_t i = 0; i < batch.targets.size(); ++i) {
      mask.mutable_data_ptr<float>()[i] = batch.targets[i] == kNoTarget ? 0.0F : 1.0F;
    }
    return mask;
  }
  // As AWD-LSTM has them, α · h.pow(2).mean() and β · (h[1:] − h[:-1]).pow(2).mean(), over what has targets.
  at::Tensor activation_penalty(const at::Tensor& h, const Batch& batch) {
    const at::Tensor mask = has_target(batch).unsqueeze(2).expand_as(h);
    return case_.regularization.activation * (h.pow(2) * mask).sum() / mask.sum();
  }
  at::Tensor temporal_penalty(const at::Tensor& h, const Batch& batch) {
    const at::Tensor both =
        has_target(batch).narrow(0, 1, kSteps - 1) * has_target(batch).narrow(0, 0, kSteps - 1);
    const at::Tensor change = h.narrow(0, 1, kSteps - 1) - h.narrow(0, 0, kSteps - 1);
    const at::Tensor mask = both.unsqueeze(2).expand_as(change);
    return case_.regularization.temporal * (change.pow(2) * mask).sum() / mask.sum();
  }

  // The recurrent weights under weight drop, through which the gradient flows.
  at::Tensor thinned(const at::Tensor& weight, int64_t layer, int64_t step) {
    at::Tensor ones = at::ones_like(weight);
    kernels::apply_dropout({weight.size(0), 1, weight.size(1)}, case_.dropout.weight, false,
                           {kSeed, Purpose::dropout_weight, step, 4 * layer + 1},
                           ones.mutable_data_ptr<float>(), pool_);
    return weight * ones;
  }

  // Of each row that is read, whether its word is kept, scaled so that the mean stays.
  [[nodiscard]] at::Tensor row_mask(const std::vector<int64_t>& rows, int64_t step) const {
    const CounterRandom random(kSeed, Purpose::dropout_embedding_rows);
    const double probability = case_.dropout.embedding;
    std::vector<float> scales;
    for (const int64_t row : rows) {
      const bool kept =
          random.uniform(static_cast<uint64_t>(step), static_cast<uint64_t>(row)) >= probability;
      scales.push_back(kept ? static_cast<float>(1 / (1 - probability)) : 0.0F);
    }
    return at::tensor(scales).unsqueeze(1);
  }

  at::Tensor mask(Purpose purpose, double probability, int64_t width, int64_t step, int64_t layer) {
    at::Tensor ones = at::ones({kSteps, kStreams, width});
    kernels::apply_dropout({kSteps, kStreams, width}, probability, case_.dropout.locked,
                           {kSeed, purpose, step, layer}, ones.mutable_data_ptr<float>(), pool_);
    return ones;
  }

  at::Tensor recurrent(size_t layer, const at::Tensor& x, at::Tensor& next_state, int64_t& at_state,
                       int64_t step) {
    const std::string suffix = "_l" + std::to_string(layer);
    const std::vector<at::Tensor> weights{
        tensors_["rnn.weight_ih" + suffix],
        thinned(tensors_["rnn.weight_hh" + suffix], static_cast<int64_t>(layer), step),
        tensors_["rnn.bias_ih" + suffix], tensors_["rnn.bias_hh" + suffix]};
    const int64_t width = shape_.hidden[layer];
    const int64_t at_h = at_state;
    at_state += width;
    const at::Tensor h0 = state_.narrow(1, at_h, width).clone().unsqueeze(0);
    at::Tensor y;
    at::Tensor h;
    if (shape_.cell == Cell::lstm) {
      const at::Tensor c0 = state_.narrow(1, at_state, width).clone().unsqueeze(0);
      at::Tensor c;
      std::tie(y, h, c) = at::lstm(x, {h0, c0}, weights, true, 1, 0.0, true, false, false);
      next_state.narrow(1, at_state, width).copy_(c.detach().squeeze(0));
      at_state += width;
    } else {
      if (shape_.cell == Cell::gru)
        std::tie(y, h) = at::gru(x, h0, weights, true, 1, 0.0, true, false, false);
      if (shape_.cell == Cell::rnn_tanh) {
        std::tie(y, h) = at::rnn_tanh(x, h0, weights, true, 1, 0.0, true, false, false);
      }
      if (shape_.cell == Cell::rnn_relu) {
        std::tie(y, h) = at::rnn_relu(x, h0, weights, true, 1, 0.0, true, false, false);
      }
    }
    next_state.narrow(1, at_h, width).copy_(h.detach().squeeze(0));
    return y;
  }

  const Case& case_;
  ModelShape shape_;
  ThreadPool& pool_;
  std::map<std::string, at::Tensor> tensors_;
  std::vector<std::string> names_;
  at::Tensor state_;
};

// A parameter's gradient as a dense tensor, whichever way the model gives it.
at::Tensor dense_gradient(const Parameter& p) {
  if (p.rows == nullptr) return at::from_blob(p.gradient.data(), at::IntArrayRef(p.shape)).clone();
  at::Tensor dense = at::zeros(at::IntArrayRef(p.shape));
  const int64_t width = dense.numel() / p.shape[0];
  for (size_t i = 0; i < p.rows->rows.size(); ++i) {
    const float* from = p.rows->values.data() + static_cast<int64_t>(i) * p.rows->width + p.row_offset;
    std::copy_n(from, width, dense.mutable_data_ptr<float>() + p.rows->rows[i] * width);
  }
  return dense;
}

class TrainingModelTest : public ::testing::TestWithParam<Case> {
 protected:
  void compare(const RecurrentStackFactory& make_stack) {
    const Case& c = GetParam();
    ThreadPool pool(2);
    const HeadLayout head = layout();
    const ModelConfig config = config_of(c);
    TrainingModel model(config, make_shape(config, kWords, head.clusters()), head, kSeed, pool, make_stack);
    TorchModel torch_model(c, model, pool);
    // The second window carries the state of the first.
    for (const int64_t step : {int64_t{0}, int64_t{1}}) {
      std::map<std::string, at::Tensor> expected;
      const Batch batch = batch_of(step == 0);
      const double expected_loss = torch_model.loss(batch, step, head, 0.25F, expected);
      const double loss = model.step(batch, {0, step, step}, 0.25F);
      EXPECT_NEAR(loss, expected_loss, 1e-4);
      for (const Parameter& p : model.parameters()) {
        const at::Tensor difference = (dense_gradient(p) - expected[p.name]).abs();
        EXPECT_LT(difference.max().item<double>(), 2e-5) << p.name << ", window " << step;
        EXPECT_GT(expected[p.name].abs().max().item<double>(), 0) << p.name << " has no gradient to compare";
      }
    }
  }
};

TEST_P(TrainingModelTest, LossAndGradientsEqualTorchs) {
  compare(make_recurrent_stack);
}
TEST_P(TrainingModelTest, WithTorchsLayersToo) {
  compare(make_torch_recurrent_stack);
}

const std::vector<Case> kCases{
    {"lstm", "lstm", {9, 7}, 6, false, {}},
    {"gru", "gru", {9, 7}, 6, false, {}},
    {"rnn_tanh", "rnn_tanh", {8}, 8, false, {}},
    {"rnn_relu", "rnn_relu", {5, 5, 5}, 5, false, {}},
    {"tied", "lstm", {9, 6}, 6, true, {}},
    {"tied_projected", "gru", {9, 7}, 6, true, {}},
    {"dropout", "lstm", {9, 7}, 6, false, {.input = 0.3, .hidden = 0.4, .output = 0.2}},
    {"locked_dropout", "gru", {9, 7}, 6, true, {.input = 0.2, .hidden = 0.3, .output = 0.3, .locked = true}},
    {"weight_drop", "lstm", {9, 7}, 6, false, {.weight = 0.5}},
    {"weight_drop_gru", "gru", {9, 7}, 6, true, {.weight = 0.3}},
    {"penalties", "lstm", {9, 7}, 6, false, {}, {.activation = 2, .temporal = 1}},
    {"embedding_dropout", "lstm", {9, 7}, 6, false, {.embedding = 0.4}},
    {"embedding_dropout_tied", "gru", {9, 6}, 6, true, {.embedding = 0.4}},
    {"awd",
     "lstm",
     {9, 6},
     6,
     true,
     {.input = 0.4, .hidden = 0.25, .output = 0.4, .embedding = 0.3, .weight = 0.5, .locked = true},
     {.activation = 2, .temporal = 1}},
};
INSTANTIATE_TEST_SUITE_P(Models, TrainingModelTest, ::testing::ValuesIn(kCases),
                         [](const auto& instance) { return std::string(instance.param.name); });

TEST(TrainingModel, DropsWholeRowsOfTheEmbeddingWhereverTheyAreRead) {
  ThreadPool pool(1);
  Case c = kCases[0];
  c.dropout.embedding = 0.5;
  const ModelConfig config = config_of(c);
  const HeadLayout head = layout();
  TrainingModel model(config, make_shape(config, kWords, head.clusters()), head, kSeed, pool);
  model.step(batch_of(true), {0, 0, 0}, 1.0F);
  const Parameter& embedding = model.parameters()[0];
  int64_t dropped = 0;
  for (size_t i = 0; i < embedding.rows->rows.size(); ++i) {
    const auto first = embedding.rows->values.begin() + static_cast<int64_t>(i) * embedding.rows->width;
    if (std::all_of(first, first + embedding.rows->width, [](float g) { return g == 0; })) ++dropped;
  }
  EXPECT_GT(dropped, 0);
  EXPECT_LT(dropped, static_cast<int64_t>(embedding.rows->rows.size()));
}

TEST(TrainingModel, IsTheSameBitsForAnyNumberOfThreads) {
  const Case& c = kCases[6];
  const ModelConfig config = config_of(c);
  const HeadLayout head = layout();
  std::vector<at::Tensor> first;
  double first_loss = 0;
  for (const int threads : {1, 2, 4}) {
    ThreadPool pool(threads);
    TrainingModel model(config, make_shape(config, kWords, head.clusters()), head, kSeed, pool);
    const double loss = model.step(batch_of(true), {0, 0, 0}, 1.0F);
    std::vector<at::Tensor> gradients;
    for (const Parameter& p : model.parameters()) gradients.push_back(dense_gradient(p));
    if (threads == 1) {
      first = gradients;
      first_loss = loss;
    }
    EXPECT_EQ(loss, first_loss);
    for (size_t i = 0; i < gradients.size(); ++i) EXPECT_TRUE(at::equal(gradients[i], first[i])) << i;
  }
}

}  // namespace
}  // namespace hsm
