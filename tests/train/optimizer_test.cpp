#include "train/optimizer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <ostream>
#include <string>
#include <vector>

#include "base/error.h"
#include "base/random.h"
#include "train/temporary_folder.h"

namespace hsm {

void PrintTo(const OptimizerConfig& config, std::ostream* out) {
  *out << config.name << " with decay " << config.weight_decay;
}

namespace {

constexpr int64_t kRows = 7;
constexpr int64_t kWidth = 3;

/// A dense matrix, an embedding, and the words of a head whose biases share the rows of its weights.
class Model {
 public:
  Model() {
    fill(dense, 1);
    fill(embedding, 2);
    fill(weight, 3);
    fill(bias, 4);
    embedding_rows.width = kWidth;
    head_rows.width = kWidth + 1;
    parameters.push_back({"rnn.weight", {2, kWidth}, dense, dense_gradient, nullptr, 0});
    parameters.push_back({"embedding.weight", {kRows, kWidth}, embedding, {}, &embedding_rows, 0});
    parameters.push_back({"head.word.weight", {kRows, kWidth}, weight, {}, &head_rows, 0});
    parameters.push_back({"head.word.bias", {kRows}, bias, {}, &head_rows, kWidth});
  }
  Model(const Model&) = delete;
  Model& operator=(const Model&) = delete;

  /// Gradients of a step that touches the rows given.
  void set_gradients(uint64_t step, const TouchedRows& touched) {
    fill(dense_gradient, 10 + step);
    embedding_rows.rows = touched.embedding;
    embedding_rows.values.resize(touched.embedding.size() * kWidth);
    fill(embedding_rows.values, 20 + step);
    head_rows.rows = touched.head;
    head_rows.values.resize(touched.head.size() * (kWidth + 1));
    fill(head_rows.values, 30 + step);
  }

  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    for (const auto* part : {&dense, &embedding, &weight, &bias})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }
  [[nodiscard]] double norm() const {
    double sum = 0;
    for (const auto* part : {&dense_gradient, &embedding_rows.values, &head_rows.values}) {
      for (const float x : *part) sum += static_cast<double>(x) * x;
    }
    return std::sqrt(sum);
  }

  std::vector<float> dense = std::vector<float>(2 * kWidth);
  std::vector<float> embedding = std::vector<float>(kRows * kWidth);
  std::vector<float> weight = std::vector<float>(kRows * kWidth);
  std::vector<float> bias = std::vector<float>(kRows);
  std::vector<float> dense_gradient = std::vector<float>(2 * kWidth);
  kernels::RowGradients<float> embedding_rows;
  kernels::RowGradients<float> head_rows;
  std::vector<Parameter> parameters;

 private:
  static void fill(std::vector<float>& values, uint64_t key) {
    const CounterRandom random(key, Purpose::sampling);
    for (size_t i = 0; i < values.size(); ++i) values[i] = static_cast<float>(2 * random.uniform(0, i) - 1);
  }
};

/// The same tensors with dense gradients, zero where no row was touched.
class DenseTwin {
 public:
  explicit DenseTwin(const Model& model)
      : embedding(model.embedding), weight(model.weight), bias(model.bias), dense(model.dense) {
    parameters.push_back({"rnn.weight", {2, kWidth}, dense, dense_gradient, nullptr, 0});
    parameters.push_back({"embedding.weight", {kRows, kWidth}, embedding, embedding_gradient, nullptr, 0});
    parameters.push_back({"head.word.weight", {kRows, kWidth}, weight, weight_gradient, nullptr, 0});
    parameters.push_back({"head.word.bias", {kRows}, bias, bias_gradient, nullptr, 0});
  }
  DenseTwin(const DenseTwin&) = delete;
  DenseTwin& operator=(const DenseTwin&) = delete;

  void copy_gradients(const Model& model) {
    dense_gradient.assign(model.dense_gradient.begin(), model.dense_gradient.end());
    scatter(model.embedding_rows, 0, kWidth, embedding_gradient);
    scatter(model.head_rows, 0, kWidth, weight_gradient);
    scatter(model.head_rows, kWidth, 1, bias_gradient);
    parameters[0].gradient = dense_gradient;
  }
  [[nodiscard]] std::vector<float> values() const {
    std::vector<float> all;
    for (const auto* part : {&dense, &embedding, &weight, &bias})
      all.insert(all.end(), part->begin(), part->end());
    return all;
  }

  std::vector<float> embedding, weight, bias, dense;
  std::vector<float> dense_gradient = std::vector<float>(2 * kWidth);
  std::vector<float> embedding_gradient = std::vector<float>(kRows * kWidth);
  std::vector<float> weight_gradient = std::vector<float>(kRows * kWidth);
  std::vector<float> bias_gradient = std::vector<float>(kRows);
  std::vector<Parameter> parameters;

 private:
  static void scatter(const kernels::RowGradients<float>& rows, int64_t offset, int64_t width,
                      std::vector<float>& out) {
    std::fill(out.begin(), out.end(), 0.0F);
    for (size_t i = 0; i < rows.rows.size(); ++i) {
      for (int64_t j = 0; j < width; ++j) {
        out[static_cast<size_t>(rows.rows[i] * width + j)] =
            rows.values[i * static_cast<size_t>(rows.width) + static_cast<size_t>(offset + j)];
      }
    }
  }
};

const std::vector<TouchedRows> kSteps{
    {{0, 3}, {0, 1, 5, 6}}, {{2}, {0, 2, 3}}, {{0, 6}, {0}}, {{}, {0, 4}}, {{3, 4, 5}, {0, 1, 5, 6}}};

void train(Model& model, Optimizer& optimizer, size_t first, size_t last) {
  for (size_t step = first; step < last; ++step) {
    if (optimizer.needs_touched_rows()) optimizer.catch_up(kSteps[step]);
    model.set_gradients(step, kSteps[step]);
    optimizer.update(0.1 / static_cast<double>(step + 1));
  }
}

OptimizerConfig named(const std::string& name, double weight_decay = 0) {
  OptimizerConfig config;
  config.name = name;
  config.weight_decay = weight_decay;
  return config;
}

TEST(Optimizer, SgdSubtractsTheGradient) {
  ThreadPool pool(1);
  Model model;
  const Model before;
  Optimizer optimizer(named("sgd"), 0, model.parameters, pool);
  EXPECT_FALSE(optimizer.needs_touched_rows());
  model.set_gradients(0, kSteps[0]);
  EXPECT_NEAR(optimizer.update(0.5), model.norm(), 1e-12);
  EXPECT_FLOAT_EQ(model.dense[4], before.dense[4] - 0.5F * model.dense_gradient[4]);
  EXPECT_FLOAT_EQ(model.embedding[3 * kWidth + 1],
                  before.embedding[3 * kWidth + 1] - 0.5F * model.embedding_rows.values[kWidth + 1]);
  EXPECT_EQ(model.embedding[1 * kWidth], before.embedding[1 * kWidth]);
  EXPECT_FLOAT_EQ(model.weight[5 * kWidth + 2],
                  before.weight[5 * kWidth + 2] - 0.5F * model.head_rows.values[2 * (kWidth + 1) + 2]);
  EXPECT_FLOAT_EQ(model.bias[5], before.bias[5] - 0.5F * model.head_rows.values[2 * (kWidth + 1) + kWidth]);
  EXPECT_EQ(model.bias[2], before.bias[2]);
}

TEST(Optimizer, ClipsByTheNormOverAllParameters) {
  ThreadPool pool(1);
  Model model;
  const Model before;
  Optimizer optimizer(named("sgd"), 0.25, model.parameters, pool);
  model.set_gradients(0, kSteps[0]);
  const double norm = model.norm();
  ASSERT_GT(norm, 0.25);
  EXPECT_NEAR(optimizer.update(1.0), norm, 1e-12);
  double moved = 0;
  const auto now = model.values();
  const auto then = before.values();
  for (size_t i = 0; i < now.size(); ++i) moved += std::pow(static_cast<double>(now[i]) - then[i], 2);
  EXPECT_NEAR(std::sqrt(moved), 0.25, 1e-6);
}

TEST(Optimizer, LeavesAGradientWithinTheNormAlone) {
  ThreadPool pool(1);
  Model clipped;
  Model free;
  Optimizer with(named("sgd"), 1000, clipped.parameters, pool);
  Optimizer without(named("sgd"), 0, free.parameters, pool);
  train(clipped, with, 0, 3);
  train(free, without, 0, 3);
  EXPECT_EQ(clipped.values(), free.values());
}

TEST(Optimizer, ANormThatIsNotFiniteChangesNothing) {
  ThreadPool pool(1);
  for (const float bad : {std::numeric_limits<float>::quiet_NaN(), std::numeric_limits<float>::infinity()}) {
    for (const int part : {0, 1, 2}) {
      Model model;
      Optimizer optimizer(named("momentum", 0.1), 1, model.parameters, pool);
      train(model, optimizer, 0, 2);
      const auto before = model.values();
      model.set_gradients(2, kSteps[2]);
      (part == 0   ? model.dense_gradient
       : part == 1 ? model.embedding_rows.values
                   : model.head_rows.values)[1] = bad;
      EXPECT_FALSE(std::isfinite(optimizer.update(0.1)));
      EXPECT_EQ(model.values(), before);
    }
  }
}

// Rows 2 … 4 of the head get a gradient of two tokens, once as rows and once as factors.
TEST(Optimizer, TakesGradientsLeftAsFactorsForTheirRows) {
  constexpr int64_t kLeaves = 3;
  constexpr int64_t kTokens = 2;
  const std::vector<float> hidden{0.5F, -1, 2, 0.25F, 1, -0.5F};
  std::vector<float> errors{1, -2, 0.5F, 0.25F, 1.5F, -1};
  ThreadPool pool(2);
  Model rows;
  Model factored;
  rows.set_gradients(0, {{1}, {2, 3, 4}});
  factored.set_gradients(0, {{1}, {}});
  for (int64_t r = 0; r < kLeaves; ++r) {
    for (int64_t u = 0; u <= kWidth; ++u) {
      float sum = 0;
      for (int64_t t = 0; t < kTokens; ++t)
        sum += errors[t * kLeaves + r] * (u < kWidth ? hidden[t * kWidth + u] : 1);
      rows.head_rows.values[r * (kWidth + 1) + u] = sum;
    }
  }
  kernels::LeafFactors<float> factors;
  factors.dim = kWidth;
  factors.clusters.push_back({2, kLeaves, kTokens, errors.data(), kLeaves, hidden.data()});
  factored.parameters[2].factors = &factors;

  for (const float last_error : {-1.0F, std::numeric_limits<float>::quiet_NaN()}) {
    errors.back() = last_error;
    const auto before = factored.values();
    Optimizer with(named("sgd"), 0.75, factored.parameters, pool);
    EXPECT_TRUE(with.takes_factors());
    const double norm = with.update(0.5);
    if (std::isnan(last_error)) {
      EXPECT_TRUE(std::isnan(norm));
      EXPECT_EQ(factored.values(), before);
      continue;
    }
    Optimizer without(named("sgd"), 0.75, rows.parameters, pool);
    EXPECT_NEAR(norm, without.update(0.5), 1e-6);
    const auto got = factored.values();
    const auto expected = rows.values();
    for (size_t i = 0; i < got.size(); ++i) ASSERT_NEAR(got[i], expected[i], 1e-6) << i;
  }
  EXPECT_FALSE(Optimizer(named("momentum"), 0, rows.parameters, pool).takes_factors());
  EXPECT_FALSE(Optimizer(named("sgd", 0.1), 0, rows.parameters, pool).takes_factors());
}

class SparseAsDense : public ::testing::TestWithParam<OptimizerConfig> {};

TEST_P(SparseAsDense, OnceCaughtUp) {
  ThreadPool pool(1);
  Model model;
  DenseTwin twin(model);
  Optimizer sparse(GetParam(), 0.8, model.parameters, pool);
  Optimizer dense(GetParam(), 0.8, twin.parameters, pool);
  for (size_t step = 0; step < kSteps.size(); ++step) {
    train(model, sparse, step, step + 1);
    twin.copy_gradients(model);
    dense.update(0.1 / static_cast<double>(step + 1));
  }
  sparse.catch_up_all();
  const auto values = model.values();
  const auto expected = twin.values();
  for (size_t i = 0; i < values.size(); ++i) EXPECT_NEAR(values[i], expected[i], 2e-6) << i;
}

INSTANTIATE_TEST_SUITE_P(Optimizers, SparseAsDense,
                         ::testing::Values(named("sgd"), named("sgd", 0.3), named("momentum"),
                                           named("momentum", 0.3), named("adagrad"), named("adagrad", 0.3)),
                         [](const auto& param) {
                           return param.param.name + (param.param.weight_decay > 0 ? "_with_decay" : "");
                         });

class OptimizerState : public ::testing::TestWithParam<OptimizerConfig> {};

TEST_P(OptimizerState, GoesOnToTheSameBitsFromACheckpoint) {
  ThreadPool pool(1);
  Model straight;
  Optimizer whole(GetParam(), 0.8, straight.parameters, pool);
  train(straight, whole, 0, kSteps.size());

  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 1);
  const auto tensors_of = [](Model& model) {
    std::vector<StateTensor> tensors;
    for (Parameter& p : model.parameters) tensors.push_back({p.name, DType::f32, p.shape, p.value.data()});
    return tensors;
  };
  Model first;
  Optimizer before(GetParam(), 0.8, first.parameters, pool);
  train(first, before, 0, 3);
  TrainingState state;
  state.position.step = 3;
  auto tensors = tensors_of(first);
  before.append_state(tensors);
  store.save(state, tensors);

  Model second;
  Optimizer after(GetParam(), 0.8, second.parameters, pool);
  const auto checkpoint = store.load_newest();
  checkpoint->restore(tensors_of(second));
  after.restore(*checkpoint);
  train(second, after, 3, kSteps.size());

  EXPECT_EQ(second.values(), straight.values());
  whole.catch_up_all();
  after.catch_up_all();
  EXPECT_EQ(second.values(), straight.values());
}

TEST_P(OptimizerState, RowsOweWhatTheyMissedByTheSettingsOfThen) {
  ThreadPool pool(1);
  Model first;
  Optimizer before(GetParam(), 0.8, first.parameters, pool);
  train(first, before, 0, 3);
  std::vector<StateTensor> tensors;
  for (Parameter& p : first.parameters) tensors.push_back({p.name, DType::f32, p.shape, p.value.data()});
  before.append_state(tensors);
  const TemporaryFolder folder;
  CheckpointStore store(folder.path(), 1);
  TrainingState state;
  state.position.step = 3;
  store.save(state, tensors);
  const auto lagging = first.values();
  before.catch_up_all();
  const auto caught_up = first.values();
  // To other settings, and from them to these: nothing is owed after either.
  for (const double decay : {0.0, 0.7}) {
    OptimizerConfig other = GetParam();
    if (other.weight_decay == decay) continue;
    other.weight_decay = decay;
    Model second;
    Optimizer after(other, 0.8, second.parameters, pool);
    const auto checkpoint = store.load_newest();
    std::vector<StateTensor> values;
    for (Parameter& p : second.parameters) values.push_back({p.name, DType::f32, p.shape, p.value.data()});
    checkpoint->restore(values);
    EXPECT_EQ(second.values(), lagging);
    after.restore(*checkpoint);
    EXPECT_EQ(second.values(), caught_up) << "decay " << decay;
    after.catch_up_all();
    EXPECT_EQ(second.values(), caught_up) << "decay " << decay;
  }
}

TEST(OptimizerUpdates, AreNoMoreThanSteps) {
  ThreadPool pool(1);
  Model model;
  Optimizer optimizer(named("adam"), 0, model.parameters, pool);
  train(model, optimizer, 0, 3);
  std::vector<StateTensor> tensors;
  optimizer.append_state(tensors);
  TemporaryFolder folder;
  CheckpointStore store(folder.path(), 1);
  TrainingState state;
  state.position.step = 2;
  store.save(state, tensors);
  EXPECT_THROW(optimizer.restore(*store.load_newest()), DataError);
}

INSTANTIATE_TEST_SUITE_P(Optimizers, OptimizerState,
                         ::testing::Values(named("sgd"), named("sgd", 0.3), named("momentum"),
                                           named("momentum", 0.3), named("adagrad"), named("adagrad", 0.3),
                                           named("adam"), named("adam", 0.3), named("adamw", 0.3)),
                         [](const auto& param) {
                           return param.param.name + (param.param.weight_decay > 0 ? "_with_decay" : "");
                         });

}  // namespace
}  // namespace hsm
