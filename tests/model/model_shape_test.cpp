#include "model/model_shape.h"

#include <gmock/gmock.h>

#include <limits>

#include "base/error.h"

namespace hsm {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

std::vector<std::string> describe(const ModelShape& shape) {
  std::vector<std::string> lines;
  for (const TensorSpec& spec : parameter_specs(shape)) {
    std::string line = spec.name;
    for (const int64_t extent : spec.shape) line += ' ' + std::to_string(extent);
    lines.push_back(line);
  }
  return lines;
}

template <class Expected>
std::string message_of(const ModelConfig& config, int64_t words, int64_t clusters) {
  try {
    make_shape(config, words, clusters);
  } catch (const Expected& error) {
    return error.what();
  }
  ADD_FAILURE() << "nothing of the expected type was thrown";
  return "";
}

TEST(ModelShape, NamesParametersAsTorchDoes) {
  ModelConfig config;
  config.hidden = {7, 5};
  config.embedding = 3;
  const ModelShape shape = make_shape(config, 11, 2);
  EXPECT_FALSE(shape.has_projection());
  EXPECT_THAT(
      describe(shape),
      ElementsAre("embedding.weight 11 3", "rnn.weight_ih_l0 28 3", "rnn.weight_hh_l0 28 7",
                  "rnn.bias_ih_l0 28", "rnn.bias_hh_l0 28", "rnn.weight_ih_l1 20 7", "rnn.weight_hh_l1 20 5",
                  "rnn.bias_ih_l1 20", "rnn.bias_hh_l1 20", "head.word.weight 11 5", "head.word.bias 11",
                  "head.cluster.weight 2 5", "head.cluster.bias 2"));
  EXPECT_EQ(shape.state_size(), 24);
  EXPECT_EQ(shape.parameter_count(),
            33 + 28 * 3 + 28 * 7 + 56 + 20 * 7 + 20 * 5 + 40 + 11 * 5 + 11 + 2 * 5 + 2);
}

TEST(ModelShape, TiedModelSavesOneMatrixAndProjectsWhenWidthsDiffer) {
  ModelConfig config;
  config.cell = "gru";
  config.layers = 1;
  config.hidden = {4};
  config.embedding = 6;
  config.tie_embeddings = true;
  const ModelShape shape = make_shape(config, 9, 0);
  EXPECT_THAT(describe(shape),
              ElementsAre("rnn.weight_ih_l0 12 6", "rnn.weight_hh_l0 12 4", "rnn.bias_ih_l0 12",
                          "rnn.bias_hh_l0 12", "projection.weight 6 4", "head.word.weight 9 6",
                          "head.word.bias 9", "head.cluster.weight 0 6", "head.cluster.bias 0"));
  EXPECT_EQ(shape.state_size(), 4);

  config.embedding = 4;
  EXPECT_FALSE(make_shape(config, 9, 0).has_projection());
}

TEST(ModelShape, FillsInWhatTheConfigurationLeavesOpen) {
  ModelConfig config;
  config.layers = 3;
  config.hidden = {5};
  EXPECT_THAT(make_shape(config, 8, 1).hidden, ElementsAre(5, 5, 5));
  EXPECT_EQ(make_shape(config, 8, 1).embedding, 5);
}

TEST(ModelShape, EveryCellKeepsItsName) {
  for (const char* name : {"lstm", "gru", "rnn_tanh", "rnn_relu"}) {
    EXPECT_STREQ(cell_name(parse_cell(name)), name);
  }
  ModelConfig config;
  config.cell = "ltsm";
  EXPECT_THAT(message_of<UsageError>(config, 8, 1),
              HasSubstr("model.cell: \"ltsm\" given, expected one of lstm, gru"));
}

TEST(ModelShape, RecurrentLayersMayStartInARangeOfTheirOwn) {
  ModelConfig config;
  config.hidden = {5, 4};
  config.embedding = 3;
  config.tie_embeddings = true;
  config.init_range = 0.5;
  for (const double range : {0.0, 0.03}) {
    config.recurrent_init_range = range;
    for (const TensorSpec& spec : parameter_specs(make_shape(config, 8, 2))) {
      const bool recurrent = spec.name.find("_l") != std::string::npos;
      EXPECT_EQ(initial_range(config, spec.name), recurrent && range > 0 ? range : 0.5) << spec.name;
    }
  }
}

TEST(ModelShape, RefusesSizesOutOfRange) {
  ModelConfig config;
  config.layers = 3;
  config.hidden = {5, 4};
  EXPECT_THAT(message_of<UsageError>(config, 8, 1), HasSubstr("model.hidden: 2 sizes given"));
  config.hidden = {5, 0, 4};
  EXPECT_THAT(message_of<UsageError>(config, 8, 1), HasSubstr("model.hidden: 0 given"));
  config.hidden = {5};
  config.embedding = -1;
  EXPECT_THAT(message_of<UsageError>(config, 8, 1), HasSubstr("model.embedding: -1 given"));
  config.embedding = std::numeric_limits<int64_t>::max();
  EXPECT_THAT(message_of<UsageError>(config, 8, 1), HasSubstr("model.embedding"));
  config.embedding = 0;
  EXPECT_THAT(message_of<DataError>(config, 1, 0), HasSubstr("vocabulary of 1 words"));
  EXPECT_THAT(message_of<DataError>(config, int64_t{1} << 31, 0),
              HasSubstr("vocabulary of 2147483648 words"));
  EXPECT_THAT(message_of<DataError>(config, 8, 9), HasSubstr("9 word classes"));
}

}  // namespace
}  // namespace hsm
