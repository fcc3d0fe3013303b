#include "model/inference_model.h"

#include <gmock/gmock.h>

#include <cmath>
#include <cstring>
#include <stdexcept>

#include "base/error.h"
#include "model/sample_models.h"

namespace hsm {
namespace {

using Floats = std::vector<float>;

std::vector<int32_t> some_words(int64_t count, int64_t words, uint64_t seed) {
  const CounterRandom random(seed, Purpose::sampling);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(
        static_cast<int32_t>(random.below(static_cast<uint64_t>(words), 0, static_cast<uint64_t>(i))));
  }
  return tokens;
}

Floats some_floats(int64_t count, uint64_t seed) {
  const CounterRandom random(seed, Purpose::sampling);
  Floats values;
  for (int64_t i = 0; i < count; ++i) {
    values.push_back(static_cast<float>(random.uniform(1, static_cast<uint64_t>(i)) - 0.5));
  }
  return values;
}

/// Within 1e-5, relative for values above 1.
void expect_close(double actual, double expected) {
  EXPECT_NEAR(actual, expected, 1e-5 * std::max(1.0, std::abs(expected)));
}

bool same_bits(const Floats& a, const Floats& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// What run() leaves behind.
struct Result {
  Floats state;
  Floats output;
};

Result run_whole(const InferenceModel& model, const std::vector<int32_t>& tokens, int64_t steps,
                 int64_t streams, Floats state) {
  constexpr int64_t kGuard = 64;
  constexpr float kUntouched = 12345;
  const int64_t output_size = steps * streams * model.shape().head_dim();
  const int64_t scratch_size = model.run_scratch(steps, streams);
  Floats output(static_cast<size_t>(output_size + kGuard), kUntouched);
  Floats scratch(static_cast<size_t>(scratch_size + kGuard), NAN);
  std::fill_n(scratch.end() - kGuard, kGuard, kUntouched);
  model.run(tokens, steps, streams, state.data(), output.data(), scratch.data());
  EXPECT_EQ(std::count(scratch.end() - kGuard, scratch.end(), kUntouched), kGuard);
  EXPECT_EQ(std::count(output.end() - kGuard, output.end(), kUntouched), kGuard);
  output.resize(static_cast<size_t>(output_size));
  return {std::move(state), std::move(output)};
}

/// The same work cut into pieces: streams into groups, steps into calls, sizes from `cuts` in turn.
Result run_in_pieces(const InferenceModel& model, const std::vector<int32_t>& tokens, int64_t steps,
                     int64_t streams, Floats state, const std::vector<int64_t>& stream_cuts,
                     const std::vector<int64_t>& step_cuts) {
  const int64_t state_size = model.shape().state_size();
  const int64_t dim = model.shape().head_dim();
  Result run{std::move(state), Floats(static_cast<size_t>(steps * streams * dim))};
  size_t cut = 0;
  for (int64_t first = 0, width = 0; first < streams; first += width) {
    width = std::min(stream_cuts[cut++ % stream_cuts.size()], streams - first);
    for (int64_t start = 0, length = 0; start < steps; start += length) {
      length = std::min(step_cuts[cut++ % step_cuts.size()], steps - start);
      std::vector<int32_t> part;
      for (int64_t row = 0; row < length * width; ++row) {
        part.push_back(tokens[static_cast<size_t>((start + row / width) * streams + first + row % width)]);
      }
      const Floats before(run.state.begin() + first * state_size,
                          run.state.begin() + (first + width) * state_size);
      const Result piece = run_whole(model, part, length, width, before);
      std::ranges::copy(piece.state, run.state.begin() + first * state_size);
      for (int64_t row = 0; row < length * width; ++row) {
        std::copy_n(piece.output.begin() + row * dim, dim,
                    run.output.begin() + ((start + row / width) * streams + first + row % width) * dim);
      }
    }
  }
  return run;
}

/// log P of every word by public id, through the two functions that scoring uses.
std::vector<double> all_log_probs(const InferenceModel& model, const float* head) {
  const HeadLayout& layout = model.layout();
  const int64_t shortlist = layout.shortlist();
  Floats root(static_cast<size_t>(shortlist + layout.clusters()));
  model.root_log_probs(head, 1, root.data());
  std::vector<double> by_word(static_cast<size_t>(layout.words()));
  for (int64_t row = 0; row < layout.words(); ++row) {
    const int32_t cluster = layout.cluster_of_row[static_cast<size_t>(row)];
    double& log_prob = by_word[static_cast<size_t>(layout.word_of_row[static_cast<size_t>(row)])];
    if (cluster == kShortlist) {
      log_prob = root[static_cast<size_t>(row)];
      continue;
    }
    const int64_t first = layout.cluster_offsets[static_cast<size_t>(cluster)];
    Floats leaves(static_cast<size_t>(layout.cluster_offsets[static_cast<size_t>(cluster) + 1] - first));
    model.leaf_log_probs(cluster, std::span(&head, 1), leaves.data());
    EXPECT_LE(*std::ranges::max_element(leaves), 0.0F);
    log_prob = double{root[static_cast<size_t>(shortlist + cluster)]} +
               double{leaves[static_cast<size_t>(row - first)]};
  }
  return by_word;
}

class InferenceModelTest : public testing::TestWithParam<SampleModel> {
 protected:
  ModelOracle oracle_ = GetParam().make(3);
  InferenceModel model_{oracle_.shape(), oracle_.layout(), oracle_.weight_view()};
};

TEST_P(InferenceModelTest, AgreesWithTheFormulasInDoublePrecision) {
  constexpr int64_t kSteps = 6;
  constexpr int64_t kStreams = 3;
  const int64_t dim = model_.shape().head_dim();
  const int64_t state_size = model_.shape().state_size();
  const std::vector<int32_t> tokens = some_words(kSteps * kStreams, model_.shape().words, 5);
  const Floats start = some_floats(kStreams * state_size, 6);
  const Result run = run_whole(model_, tokens, kSteps, kStreams, start);

  for (int64_t stream = 0; stream < kStreams; ++stream) {
    Doubles state(start.begin() + stream * state_size, start.begin() + (stream + 1) * state_size);
    for (int64_t step = 0; step < kSteps; ++step) {
      const Doubles head = oracle_.step(tokens[static_cast<size_t>(step * kStreams + stream)], state);
      const float* row = run.output.data() + (step * kStreams + stream) * dim;
      for (int64_t i = 0; i < dim; ++i) expect_close(row[i], head[static_cast<size_t>(i)]);
      const std::vector<double> actual = all_log_probs(model_, row);
      const Doubles expected = oracle_.log_probs(head);
      for (size_t word = 0; word < actual.size(); ++word) expect_close(actual[word], expected[word]);
    }
    for (int64_t i = 0; i < state_size; ++i) {
      expect_close(run.state[static_cast<size_t>(stream * state_size + i)], state[static_cast<size_t>(i)]);
    }
  }
}

TEST_P(InferenceModelTest, ProbabilitiesAddUpToOne) {
  for (uint64_t seed = 0; seed < 5; ++seed) {
    Floats head = some_floats(model_.shape().head_dim(), seed);
    for (float& value : head) value *= 10;
    double sum = 0;
    for (const double log_prob : all_log_probs(model_, head.data())) sum += std::exp(log_prob);
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_P(InferenceModelTest, GroupingOfStreamsAndStepsChangesNoBit) {
  constexpr int64_t kSteps = 13;
  constexpr int64_t kStreams = 17;
  const std::vector<int32_t> tokens = some_words(kSteps * kStreams, model_.shape().words, 7);
  const Floats start = some_floats(kStreams * model_.shape().state_size(), 8);
  const Result whole = run_whole(model_, tokens, kSteps, kStreams, start);
  const std::vector<std::pair<std::vector<int64_t>, std::vector<int64_t>>> groupings{
      {{1}, {1}}, {{17}, {1}}, {{1}, {13}}, {{2, 7, 5, 3}, {5, 1, 3}}, {{16, 1}, {2, 11}}};
  for (const auto& [stream_cuts, step_cuts] : groupings) {
    const Result pieces = run_in_pieces(model_, tokens, kSteps, kStreams, start, stream_cuts, step_cuts);
    EXPECT_TRUE(same_bits(pieces.state, whole.state));
    EXPECT_TRUE(same_bits(pieces.output, whole.output));
  }
}

TEST_P(InferenceModelTest, RowsOfTheHeadDoNotDependOnTheirNeighbours) {
  constexpr int64_t kRows = 23;
  const int64_t dim = model_.shape().head_dim();
  const Floats heads = some_floats(kRows * dim, 9);
  const int64_t root_width = model_.layout().shortlist() + model_.layout().clusters();
  Floats together(static_cast<size_t>(kRows * root_width));
  Floats alone(together.size());
  model_.root_log_probs(heads.data(), kRows, together.data());
  for (int64_t row = 0; row < kRows; ++row) {
    model_.root_log_probs(heads.data() + row * dim, 1, alone.data() + row * root_width);
  }
  EXPECT_TRUE(same_bits(together, alone));

  std::vector<const float*> pointers;
  for (int64_t row = 0; row < kRows; ++row) pointers.push_back(heads.data() + row * 7 % kRows * dim);
  for (int64_t cluster = 0; cluster < model_.layout().clusters(); ++cluster) {
    const auto width = static_cast<size_t>(model_.layout().cluster_offsets[static_cast<size_t>(cluster) + 1] -
                                           model_.layout().cluster_offsets[static_cast<size_t>(cluster)]);
    together.assign(kRows * width, NAN);
    alone.assign(kRows * width, NAN);
    model_.leaf_log_probs(cluster, pointers, together.data());
    for (size_t row = 0; row < kRows; ++row) {
      model_.leaf_log_probs(cluster, std::span(pointers).subspan(row, 1), alone.data() + row * width);
    }
    EXPECT_TRUE(same_bits(together, alone));
  }
}

TEST_P(InferenceModelTest, ManyThreadsMayUseOneModel) {
  constexpr int64_t kSteps = 9;
  const std::vector<int32_t> tokens = some_words(kSteps, model_.shape().words, 10);
  const Floats start = some_floats(model_.shape().state_size(), 11);
  const Result expected = run_whole(model_, tokens, kSteps, 1, start);
  std::vector<Result> runs(8);
  ThreadPool pool(3);
  pool.run(8, [&](int64_t item, int) {
    runs[static_cast<size_t>(item)] = run_whole(model_, tokens, kSteps, 1, start);
  });
  for (const Result& run : runs) EXPECT_TRUE(same_bits(run.output, expected.output));
}

INSTANTIATE_TEST_SUITE_P(Cells, InferenceModelTest, testing::ValuesIn(sample_models()),
                         [](const auto& param) { return param.param.name; });

TEST(InferenceModel, AClusterOfOneWordIsCertain) {
  const ModelOracle oracle = SampleModel{"", Cell::gru, {4}, 4, false, 2, {1, 3}}.make(1);
  const InferenceModel model(oracle.shape(), oracle.layout(), oracle.weight_view());
  const Floats head = some_floats(8, 1);
  const std::vector<const float*> rows{head.data(), head.data() + 4};
  Floats log_probs{7, 7};
  model.leaf_log_probs(0, rows, log_probs.data());
  EXPECT_THAT(log_probs, testing::ElementsAre(0, 0));
}

TEST(InferenceModel, NothingToDoChangesNothing) {
  const ModelOracle oracle = SampleModel{"", Cell::lstm, {4}, 4, false, 2, {3}}.make(1);
  const InferenceModel model(oracle.shape(), oracle.layout(), oracle.weight_view());
  Floats state = some_floats(model.shape().state_size(), 1);
  const Floats before = state;
  model.run({}, 0, 1, state.data(), nullptr, nullptr);
  model.run({}, 3, 0, state.data(), nullptr, nullptr);
  EXPECT_EQ(state, before);
}

TEST(InferenceModel, RefusesWordsThatItDoesNotHave) {
  const ModelOracle oracle = SampleModel{"", Cell::lstm, {4}, 4, false, 2, {3}}.make(1);
  const InferenceModel model(oracle.shape(), oracle.layout(), oracle.weight_view());
  const Floats state(static_cast<size_t>(model.shape().state_size()));
  EXPECT_THROW(run_whole(model, {5}, 1, 1, state), DataError);
  EXPECT_THROW(run_whole(model, {-1}, 1, 1, state), DataError);
  EXPECT_THROW(run_whole(model, {1, 2}, 1, 1, state), std::invalid_argument);
}

TEST(InferenceModel, OwnsPackedCopiesOfRecurrentAndRootWeightsOnly) {
  const ModelOracle small = SampleModel{"", Cell::lstm, {32}, 32, false, 2, {30}}.make(1);
  const ModelOracle large = SampleModel{"", Cell::lstm, {32}, 32, false, 2, {30'000}}.make(1);
  const uint64_t owned = InferenceModel(small.shape(), small.layout(), small.weight_view()).owned_bytes();
  EXPECT_EQ(InferenceModel(large.shape(), large.layout(), large.weight_view()).owned_bytes(), owned);
  EXPECT_GE(owned, 4 * (128 * 64 + 128 + 3 * 32 + 3));
}

}  // namespace
}  // namespace hsm
