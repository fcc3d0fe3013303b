#include "decode/model_scorer.h"

#include <gtest/gtest.h>

#include <cmath>
#include <numeric>

#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"
#include "model/sample_models.h"

namespace hsm::testing {
namespace {

class ModelScorerOf : public ::testing::TestWithParam<SampleModel> {
 protected:
  ModelScorerOf()
      : oracle_(GetParam().make(3)),
        model_(oracle_.shape(), oracle_.layout(), oracle_.weight_view()),
        scorer_(model_, static_cast<int32_t>(oracle_.layout().word_of_row.front())) {}

  ModelOracle oracle_;
  InferenceModel model_;
  ModelScorer scorer_;
};

TEST_P(ModelScorerOf, FollowsTheFormulasAndSumsToOne) {
  Doubles state = oracle_.zero_state();
  History history(scorer_);
  const auto words = static_cast<int32_t>(scorer_.words());
  for (const int32_t word : {scorer_.end_of_sentence(), 1 % words, 5 % words, 1 % words}) {
    history.feed(word);
    const Doubles expected = oracle_.log_probs(oracle_.step(word, state));
    const auto found = history.word_log_probs();
    double sum = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      EXPECT_NEAR(found[i], expected[i], 1e-5);
      sum += std::exp(found[i]);
    }
    EXPECT_NEAR(sum, 1, 1e-5);
  }
}

TEST_P(ModelScorerOf, FindsEachWordWhereItStands) {
  for (int32_t word = 0; word < scorer_.words(); ++word) {
    const WordPlace place = scorer_.place(word);
    const auto list = place.cluster < 0 ? scorer_.shortlist_words() : scorer_.cluster_words(place.cluster);
    EXPECT_EQ(list[static_cast<size_t>(place.index)], word);
  }
}

// To the bit: the search feeds many rows together and computes few clusters, the oracle goes word by word
// and computes all.
TEST_P(ModelScorerOf, IsSearchedAsADenseSearchWould) {
  const auto words = static_cast<int32_t>(scorer_.words());
  const std::vector<std::vector<int32_t>> prompts{{}, {0}, {words - 1, 0, words / 2}};
  for (const int64_t beam : {1, 2, 7, 64}) {
    BeamOptions options;
    options.beam = beam;
    options.nbest = beam;
    options.length.max_length = 6;
    options.length.length_penalty = 0.5;
    options.token_scores = true;
    DecoderSettings settings;
    settings.task = options;
    const Results results = decode(scorer_, settings, prompts, 2);
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_EQ(results.blocks[i].outputs, dense_beam_search(scorer_, prompts[i], options))
          << "beam " << beam;
      for (size_t n = 0; n < results.blocks[i].outputs.size(); ++n) {
        const Output& output = results.blocks[i].outputs[n];
        const auto& scores = results.blocks[i].token_log_probs[n];
        EXPECT_EQ(scores, token_log_probs(scorer_, prompts[i], output.tokens));
        EXPECT_EQ(std::accumulate(scores.begin(), scores.end(), 0.0), output.log_prob);
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Models, ModelScorerOf, ::testing::ValuesIn(sample_models()),
                         [](const auto& model) { return model.param.name; });

}  // namespace
}  // namespace hsm::testing
