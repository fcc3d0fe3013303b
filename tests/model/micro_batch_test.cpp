#include "model/micro_batch.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <map>
#include <string>

#include "base/vector_norm.h"
#include "model/training_model.h"

namespace hsm {
namespace {

using test::norm;
using testing::ElementsAre;

TEST(MicroBatch, GroupsDifferByAtMostOneStream) {
  const auto sizes = [](int64_t streams, int64_t pieces) {
    std::vector<int64_t> result;
    int64_t next = 0;
    for (const StreamGroup& group : group_streams(streams, pieces)) {
      EXPECT_EQ(group.first, next);
      next += group.count;
      result.push_back(group.count);
    }
    return result;
  };
  EXPECT_THAT(sizes(20, 4), ElementsAre(5, 5, 5, 5));
  EXPECT_THAT(sizes(7, 3), ElementsAre(3, 2, 2));
  EXPECT_THAT(sizes(2, 5), ElementsAre(1, 1));
  EXPECT_THAT(sizes(1, 1), ElementsAre(1));
}

TEST(MicroBatch, APartHoldsItsStreamsAtAllTimes) {
  const Batch batch{2, 3, {10, 11, 12, 20, 21, 22}, {30, 31, 32, 40, kNoTarget, 42}, 5, true};
  const Batch part = part_of(batch, {1, 2});
  EXPECT_EQ(part.steps, 2);
  EXPECT_EQ(part.streams, 2);
  EXPECT_TRUE(part.starts);
  EXPECT_THAT(part.inputs, ElementsAre(11, 12, 21, 22));
  EXPECT_THAT(part.targets, ElementsAre(31, 32, kNoTarget, 42));
  EXPECT_EQ(part.target_count, 3);
}

// ---- the training step in pieces

struct Case {
  std::string name;
  std::string cell;
  bool tied;
  bool locked;
};

constexpr int64_t kWords = 31;
constexpr int64_t kStreams = 7;
constexpr int64_t kSteps = 6;

HeadLayout layout() {
  WordClasses classes;
  classes.clusters = 5;  // of 1, 3, 7, 7 and 8 words, ids spread over them, beside 5 at the root
  for (int32_t id = 0; id < kWords; ++id) {
    const int32_t slot = (id * 7) % kWords;
    classes.cluster_of.push_back(slot < 5    ? kShortlist
                                 : slot < 6  ? 0
                                 : slot < 9  ? 1
                                 : slot < 16 ? 2
                                 : slot < 23 ? 3
                                             : 4);
  }
  return make_layout(classes);
}

Batch window(int64_t number) {
  Batch batch;
  batch.steps = kSteps;
  batch.streams = kStreams;
  batch.starts = number == 0;
  for (int64_t i = 0; i < kSteps * kStreams; ++i) {
    batch.inputs.push_back(static_cast<int32_t>((i * 5 + number) % kWords));
    // Stream 2 is padding for all but its first time.
    const bool padding = i % kStreams == 2 && i >= kStreams;
    batch.targets.push_back(padding ? kNoTarget : static_cast<int32_t>((i * 11 + number * 3) % kWords));
    if (!padding) ++batch.target_count;
  }
  return batch;
}

using Gradients = std::map<std::string, std::vector<double>>;

Gradients dense_gradients(TrainingModel& model) {
  Gradients result;
  for (const Parameter& p : model.parameters()) {
    std::vector<double>& dense = result[p.name];
    if (p.rows == nullptr) {
      dense.assign(p.gradient.begin(), p.gradient.end());
      continue;
    }
    dense.assign(p.value.size(), 0);
    const size_t width = p.value.size() / static_cast<size_t>(p.shape[0]);
    for (size_t i = 0; i < p.rows->rows.size(); ++i) {
      for (size_t u = 0; u < width; ++u) {
        dense[static_cast<size_t>(p.rows->rows[i]) * width + u] =
            p.rows->values[i * static_cast<size_t>(p.rows->width) + static_cast<size_t>(p.row_offset) + u];
      }
    }
  }
  return result;
}

struct Windows {
  std::vector<double> losses;
  std::vector<Gradients> gradients;
  std::vector<float> state;
};

// Two windows, the second carrying the states of the first.
Windows train_windows(const Case& c, const StepPieces& pieces) {
  ModelConfig config;
  config.cell = c.cell;
  config.hidden = {9, 7};
  config.embedding = 6;
  config.tie_embeddings = c.tied;
  config.init_range = 0.5;
  config.dropout = {
      .input = 0.3, .hidden = 0.4, .output = 0.2, .embedding = 0.2, .weight = 0.3, .locked = c.locked};
  config.regularization = {.activation = 2, .temporal = 1};
  const HeadLayout head = layout();
  ThreadPool pool(2);
  TrainingModel model(config, make_shape(config, kWords, head.clusters()), head, 5, pool);
  model.cut_steps(pieces);
  Windows result;
  for (const int64_t number : {int64_t{0}, int64_t{1}}) {
    result.losses.push_back(model.step(window(number), {0, number, number}, 0.25F));
    result.gradients.push_back(dense_gradients(model));
  }
  const auto state = model.carried_state(kStreams);
  result.state.assign(state.begin(), state.end());
  return result;
}

void expect_equal_within_rounding(const Windows& pieces, const Windows& whole) {
  for (size_t window = 0; window < whole.losses.size(); ++window) {
    EXPECT_NEAR(pieces.losses[window], whole.losses[window], 1e-6 * whole.losses[window]);
    for (const auto& [name, expected] : whole.gradients[window]) {
      std::vector<double> difference = pieces.gradients[window].at(name);
      ASSERT_EQ(difference.size(), expected.size());
      for (size_t i = 0; i < expected.size(); ++i) difference[i] -= expected[i];
      ASSERT_GT(norm(expected), 0) << name;
      EXPECT_LT(norm(difference), 2e-6 * norm(expected)) << name << ", window " << window;
    }
  }
}

class StepInPieces : public testing::TestWithParam<Case> {};

TEST_P(StepInPieces, HasTheSameGradient) {
  const Windows whole = train_windows(GetParam(), {});
  for (const int64_t micro_batches : {1, 2, 4, 7, 100}) {
    for (const int64_t head_chunk : {0, 1, 5, 41, 1000}) {
      SCOPED_TRACE(testing::Message() << micro_batches << " micro-batches, chunks of " << head_chunk);
      const Windows pieces = train_windows(GetParam(), {micro_batches, head_chunk});
      expect_equal_within_rounding(pieces, whole);
      EXPECT_EQ(pieces.state, whole.state);
    }
  }
}

TEST_P(StepInPieces, InOnePieceHasTheSameBits) {
  const Windows whole = train_windows(GetParam(), {});
  const Windows uncut = train_windows(GetParam(), {1, kSteps * kStreams});
  EXPECT_EQ(uncut.losses, whole.losses);
  EXPECT_EQ(uncut.gradients, whole.gradients);
}

INSTANTIATE_TEST_SUITE_P(Models, StepInPieces,
                         testing::Values(Case{"lstm", "lstm", false, false}, Case{"tied", "gru", true, false},
                                         Case{"locked", "lstm", true, true},
                                         Case{"plain", "rnn_tanh", false, true}),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace hsm
