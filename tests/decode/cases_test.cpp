// Behaviour that users of beam search have missed elsewhere, a test each.
#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <random>
#include <set>

#include "base/error.h"
#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

constexpr float kZero = -std::numeric_limits<float>::infinity();

/// Counts the rows of each call of advance().
class CountingScorer : public ScriptedScorer {
 public:
  using ScriptedScorer::ScriptedScorer;
  void advance(std::span<const int32_t> tokens, float* state, float* head, float* scratch) const override {
    rows.push_back(tokens.size());
    ScriptedScorer::advance(tokens, state, head, scratch);
  }
  mutable std::vector<size_t> rows;
};

/// Words a (1), b (2) at the root and the end symbol (0); the same distribution everywhere.
ScriptedScorer three_symbols(float end, float a, float b) {
  ScriptedShape shape;
  shape.shortlist = {0, 1, 2};
  shape.end = 0;
  ScriptedScorer scorer(shape, Tables::smooth, 1);
  scorer.set_root(std::vector<float>{end, a, b});
  return scorer;
}

std::vector<Output> search(const Scorer& scorer, const BeamOptions& options,
                           std::vector<int32_t> prompt = {}) {
  DecoderSettings settings;
  settings.task = options;
  return decode(scorer, settings, {std::move(prompt)}).blocks.at(0).outputs;
}

BeamOptions beam(int64_t width, int64_t nbest = 1, int64_t max_length = 6) {
  BeamOptions options;
  options.beam = width;
  options.nbest = nbest;
  options.length.max_length = max_length;
  return options;
}

std::vector<std::vector<int32_t>> random_prompts(size_t count, int32_t words, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<std::vector<int32_t>> prompts(count);
  for (auto& prompt : prompts) {
    for (size_t i = random() % 7; i > 0; --i) {
      prompt.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(words)));
    }
  }
  return prompts;
}

TEST(Cases, ThePromptRunsAtWidthOneAndOnlyHypothesisZeroExpandsAtFirst) {
  const CountingScorer scorer(random_shape(30, 5, 4, 1), Tables::smooth, 1);
  DecoderSettings settings;
  settings.task = beam(6, 6, 3);
  settings.allowed = [&](int32_t word) { return word != scorer.end_of_sentence(); };
  decode(scorer, settings, {{3, 1, 4, 1, 5}});
  // The start symbol and five words, then two steps of six hypotheses.
  EXPECT_EQ(scorer.rows, (std::vector<size_t>{1, 1, 1, 1, 1, 1, 6, 6}));
}

TEST(Cases, OutputDoesNotDependOnBatchBudgetExpansionsOrThreads) {
  const ScriptedScorer scorer(random_shape(60, 6, 9, 2), Tables::coarse, 2);
  const auto prompts = random_prompts(23, 60, 2);
  DecoderSettings settings;
  BeamOptions options = beam(5, 3, 8);
  options.length.length_penalty = 0.7;
  options.token_scores = true;
  settings.task = options;
  settings.batch = 1;
  settings.expansions = 1000;
  const Results alone = decode(scorer, settings, prompts);
  ASSERT_EQ(alone.blocks.size(), prompts.size());
  for (const int64_t batch : {0, 2, 5, 64}) {
    for (const int64_t expansions : {1, 2, 7, 0}) {
      for (const int threads : {1, 3}) {
        settings.batch = batch;
        settings.expansions = expansions;
        EXPECT_EQ(decode(scorer, settings, prompts, threads).blocks, alone.blocks)
            << "batch " << batch << ", expansions " << expansions << ", threads " << threads;
      }
    }
  }
}

TEST(Cases, NeverAreMoreHypothesesAliveThanTheBeam) {
  const CountingScorer scorer(random_shape(30, 5, 4, 11), Tables::smooth, 11);
  DecoderSettings settings;
  settings.batch = 1;
  for (const int64_t width : {1, 2, 7}) {
    scorer.rows.clear();
    settings.task = beam(width, 1, 12);
    decode(scorer, settings, random_prompts(5, 30, 11));
    EXPECT_EQ(*std::max_element(scorer.rows.begin(), scorer.rows.end()), static_cast<size_t>(width));
  }
}

TEST(Cases, ThereAreTwoStateBuffersNeverThree) {
  const ScriptedScorer scorer(random_shape(30, 5, 4, 12), Tables::smooth, 12);
  DecoderSettings settings;
  settings.task = beam(16, 1, 12);
  settings.batch = 8;
  ThreadPool pool(1);
  const CpuDecodeDevice device(scorer, pool);
  const Decoder decoder(device, settings);
  ASSERT_EQ(decoder.plan().inputs, 8);
  const uint64_t state = 3 * sizeof(float);
  const uint64_t two_buffers = 2 * 8 * 16 * state;
  for (const MemoryPart& part : decoder.plan().workspace.parts) {
    if (part.name == "states") {
      EXPECT_EQ(part.bytes, two_buffers);
    }
  }
}

TEST(Cases, StatesAndFinishedOutputsStayWithTheirHypotheses) {
  // The script has three recurrences, one a float of the state: a layer that isn't moved shows at once.
  for (uint32_t seed = 20; seed < 40; ++seed) {
    const ScriptedScorer scorer(random_shape(25, 6, 4, seed), Tables::smooth, seed);
    const BeamOptions options = beam(6, 6, 10);
    EXPECT_EQ(search(scorer, options, {3, 4}), dense_beam_search(scorer, {3, 4}, options)) << seed;
  }
}

TEST(Cases, EachInputStopsForItself) {
  // After a long prompt or a short one, alone or beside others: the same steps.
  const CountingScorer scorer(random_shape(40, 40, 0, 3), Tables::smooth, 3);
  DecoderSettings settings;
  settings.task = beam(3, 1, 200);
  const auto prompts = random_prompts(6, 40, 3);
  settings.batch = 1;
  decode(scorer, settings, prompts);
  const size_t alone = std::accumulate(scorer.rows.begin(), scorer.rows.end(), size_t{0});
  scorer.rows.clear();
  settings.batch = 6;
  decode(scorer, settings, prompts);
  EXPECT_EQ(std::accumulate(scorer.rows.begin(), scorer.rows.end(), size_t{0}), alone);
}

TEST(Cases, StopsWhenNoLiveHypothesisCanComeIntoTheBest) {
  const ScriptedScorer scorer = three_symbols(-0.1F, -3, -4);
  for (const double penalty : {-1.0, 0.0}) {
    DecoderSettings settings;
    BeamOptions options = beam(2, 1, 10'000);
    options.length.length_penalty = penalty;
    settings.task = options;
    ThreadPool pool(1);
    const CpuDecodeDevice device(scorer, pool);
    Decoder decoder(device, settings);
    PromptsInMemory feed(std::vector<std::vector<int32_t>>(1));
    Results results;
    decoder.run(feed, results);
    EXPECT_LE(decoder.stats().steps, 2) << penalty;
  }
}

TEST(Cases, APositivePenaltyLetsALongerOutputWinLate) {
  // Each word costs little and the end much at first sight; division by the length turns that round.
  const ScriptedScorer scorer = three_symbols(-2, -0.2F, -3);
  BeamOptions options = beam(2, 1, 12);
  EXPECT_EQ(search(scorer, options).at(0).tokens, (std::vector<int32_t>{0}));
  options.length.length_penalty = 2;
  const auto longest = search(scorer, options).at(0);
  EXPECT_EQ(longest.tokens.size(), 12);
  EXPECT_EQ(longest, dense_beam_search(scorer, {}, options).at(0));
}

TEST(Cases, ThePromptIsOutsideTheLengthPenaltyAndEachOutputHasItsOwnLength) {
  const ScriptedScorer scorer = three_symbols(-1, -1, -2);
  BeamOptions options = beam(4, 4, 3);
  options.length.length_penalty = 1;
  const auto outputs = search(scorer, options, {1, 1, 2, 1, 2});
  ASSERT_EQ(outputs.size(), 4);
  for (const Output& output : outputs) {
    EXPECT_DOUBLE_EQ(output.score, output.log_prob / ((5 + static_cast<double>(output.tokens.size())) / 6));
  }
}

TEST(Cases, TiesGoToTheSmallerWordThenToTheEarlierParent) {
  const ScriptedScorer scorer = three_symbols(-9, -1, -1);
  const auto outputs = search(scorer, beam(3, 3, 2));
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_EQ(outputs[0].tokens, (std::vector<int32_t>{1, 1}));
  EXPECT_EQ(outputs[1].tokens, (std::vector<int32_t>{2, 1}));
  EXPECT_EQ(outputs[2].tokens, (std::vector<int32_t>{1, 2}));
}

TEST(Cases, BeamOneIsGreedySearch) {
  const ScriptedScorer scorer(random_shape(50, 9, 6, 4), Tables::smooth, 4);
  const auto output = search(scorer, beam(1, 1, 15), {7}).at(0);
  History history(scorer);
  history.feed(scorer.end_of_sentence());
  history.feed(7);
  for (const int32_t token : output.tokens) {
    const auto log_probs = history.word_log_probs();
    EXPECT_EQ(token, std::max_element(log_probs.begin(), log_probs.end()) - log_probs.begin());
    history.feed(token);
  }
  EXPECT_TRUE(output.finished || output.tokens.size() == 15);
}

TEST(Cases, AHypothesisOfProbabilityZeroIsNeverOutput) {
  const ScriptedScorer scorer = three_symbols(kZero, -0.5F, kZero);
  const auto outputs = search(scorer, beam(5, 5, 3));
  ASSERT_EQ(outputs.size(), 1);  // the only possible one
  EXPECT_EQ(outputs[0].tokens, (std::vector<int32_t>{1, 1, 1}));

  const ScriptedScorer nothing = three_symbols(kZero, kZero, kZero);
  EXPECT_TRUE(search(nothing, beam(5, 5, 3)).empty());
}

TEST(Cases, OutputsAreDistinctAndHoldExactlyOneEndSymbolAtTheEnd) {
  for (const Tables tables : {Tables::smooth, Tables::coarse, Tables::zeros}) {
    const ScriptedScorer scorer(random_shape(20, 6, 3, 5), tables, 5);
    const auto outputs = search(scorer, beam(64, 64, 7), {2});
    std::set<std::vector<int32_t>> distinct;
    for (const Output& output : outputs) {
      distinct.insert(output.tokens);
      EXPECT_EQ(std::count(output.tokens.begin(), output.tokens.end(), scorer.end_of_sentence()),
                output.finished);
      EXPECT_EQ(output.tokens.back() == scorer.end_of_sentence(), output.finished);
      EXPECT_TRUE(output.finished || output.tokens.size() == 7);
      EXPECT_TRUE(std::isfinite(output.log_prob));
    }
    EXPECT_EQ(distinct.size(), outputs.size());
  }
}

TEST(Cases, TheBeamMayBeLargerThanTheVocabulary) {
  const ScriptedScorer scorer = three_symbols(-1, -2, -3);
  const BeamOptions options = beam(300, 300, 5);
  EXPECT_EQ(search(scorer, options), dense_beam_search(scorer, {}, options));
}

TEST(Cases, TheEndSymbolFirstGivesAnEmptyOutput) {
  const auto outputs = search(three_symbols(-0.01F, -6, -6), beam(2));
  ASSERT_EQ(outputs.size(), 1);
  EXPECT_TRUE(outputs[0].finished);
  EXPECT_EQ(outputs[0].tokens.size(), 1);  // the end symbol, and no word
}

TEST(Cases, LengthZeroGivesOneEmptyOutput) {
  const auto outputs = search(three_symbols(-1, -1, -1), beam(3, 3, 0), {1});
  ASSERT_EQ(outputs.size(), 1);
  EXPECT_EQ(outputs[0], (Output{{}, 0, 0, false}));
}

TEST(Cases, LengthOneGivesTheBestWords) {
  const auto outputs = search(three_symbols(-2, -1, -3), beam(3, 3, 1));
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_EQ(outputs[0], (Output{{1}, -1, -1, false}));
  EXPECT_EQ(outputs[1], (Output{{0}, -2, -2, true}));
  EXPECT_EQ(outputs[2], (Output{{2}, -3, -3, false}));
}

TEST(Cases, MinLengthHoldsTheEndBack) {
  const ScriptedScorer scorer = three_symbols(-0.01F, -6, -7);
  BeamOptions options = beam(2, 1, 9);
  options.length.min_length = 4;
  const auto output = search(scorer, options).at(0);
  EXPECT_EQ(output.tokens, (std::vector<int32_t>{1, 1, 1, 1, 0}));
}

TEST(Cases, SuppressedWordsGiveTheirPlacesToOthers) {
  const ScriptedScorer scorer(random_shape(40, 8, 5, 6), Tables::smooth, 6);
  DecoderSettings settings;
  settings.task = beam(10, 10, 1);
  const auto all = decode(scorer, settings, {{}}).blocks[0].outputs;
  const int32_t best = all[0].tokens[0];
  settings.allowed = [best](int32_t word) { return word != best; };
  const auto without = decode(scorer, settings, {{}}).blocks[0].outputs;
  ASSERT_EQ(without.size(), 10);  // suppressed before ranking, not struck out of the result
  EXPECT_TRUE(std::equal(all.begin() + 1, all.end(), without.begin()));
}

TEST(Cases, TheScoreOfAnOutputIsTheSumOfItsTokens) {
  const ScriptedScorer scorer(random_shape(70, 9, 8, 7), Tables::smooth, 7);
  DecoderSettings settings;
  BeamOptions options = beam(9, 9, 12);
  options.token_scores = true;
  settings.task = options;
  settings.expansions = 4;  // fewer than the outputs scored at the end
  const std::vector<int32_t> prompt{5, 6, 7};
  const auto block = decode(scorer, settings, {prompt}).blocks.at(0);
  ASSERT_EQ(block.outputs.size(), 9);
  for (size_t i = 0; i < block.outputs.size(); ++i) {
    const auto& token_scores = block.token_log_probs[i];
    EXPECT_EQ(token_scores, token_log_probs(scorer, prompt, block.outputs[i].tokens));
    EXPECT_EQ(block.outputs[i].log_prob, std::accumulate(token_scores.begin(), token_scores.end(), 0.0));
  }
}

TEST(Cases, EveryOutputIsInOrderOfScore) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 8), Tables::smooth, 8);
  for (const double penalty : {-1.0, 0.0, 1.5}) {
    BeamOptions options = beam(16, 16, 9);
    options.length.length_penalty = penalty;
    const auto outputs = search(scorer, options);
    EXPECT_TRUE(std::is_sorted(outputs.begin(), outputs.end(),
                               [](const Output& a, const Output& b) { return a.score > b.score; }));
  }
}

TEST(Cases, AsManyBlocksAsInputsInTheirOrder) {
  const ScriptedScorer scorer(random_shape(30, 9, 3, 9), Tables::smooth, 9);
  DecoderSettings settings;
  settings.task = beam(2, 1, 9);
  settings.batch = 4;
  const auto prompts = random_prompts(19, 30, 9);
  const Results results = decode(scorer, settings, prompts);
  ASSERT_EQ(results.blocks.size(), 19);
  for (size_t i = 0; i < 19; ++i) EXPECT_EQ(results.blocks[i].number, static_cast<int64_t>(i));
  EXPECT_TRUE(decode(scorer, settings, {}).blocks.empty());
}

TEST(Cases, ScoresThatAreNotNumbersAreAnErrorOfTheModel) {
  ScriptedScorer scorer = three_symbols(-1, -1, -1);
  scorer.set_root(std::vector<float>(3, std::numeric_limits<float>::quiet_NaN()));
  EXPECT_THROW(search(scorer, beam(2)), DataError);

  ScriptedScorer clusters(random_shape(9, 1, 2, 1), Tables::smooth, 1);
  for (int64_t cluster = 0; cluster < 2; ++cluster) {
    clusters.set_leaves(cluster, std::vector<float>(clusters.cluster_words(cluster).size(),
                                                    std::numeric_limits<float>::quiet_NaN()));
  }
  EXPECT_THROW(search(clusters, beam(9)), DataError);
}

TEST(Cases, OptionsOutOfRangeAreRefused) {
  const ScriptedScorer scorer = three_symbols(-1, -1, -1);
  BeamOptions wide = beam(2, 3);
  EXPECT_THROW(search(scorer, wide), UsageError);
  BeamOptions none = beam(0);
  EXPECT_THROW(search(scorer, none), UsageError);
  BeamOptions crossed = beam(2);
  crossed.length.min_length = crossed.length.max_length + 1;
  EXPECT_THROW(search(scorer, crossed), UsageError);
  BeamOptions infinite = beam(2);
  infinite.length.length_penalty = std::numeric_limits<double>::infinity();
  EXPECT_THROW(search(scorer, infinite), UsageError);
  BeamOptions huge = beam(kWidestBeam, 1, kLongestOutput);
  EXPECT_THROW(search(scorer, huge), UsageError);
}

}  // namespace
}  // namespace hsm::testing
