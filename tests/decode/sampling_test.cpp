#include "decode/sampling.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <map>
#include <numeric>
#include <random>

#include "base/error.h"
#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

SamplingOptions sampling(int64_t samples, int64_t max_length = 1) {
  SamplingOptions options;
  options.samples = samples;
  options.length.max_length = max_length;
  return options;
}

std::vector<Output> draw(const Scorer& scorer, const SamplingOptions& options,
                         std::vector<int32_t> prompt = {}, const Allowed& allowed = {}) {
  DecoderSettings settings;
  settings.task = options;
  settings.allowed = allowed;
  return decode(scorer, settings, {std::move(prompt)}).blocks.at(0).outputs;
}

/// What the words after a history should be drawn with, straight from the definition: the set is cut by the
/// model's own probabilities, the temperature applies within it.
std::vector<double> expected(const History& history, const SamplingOptions& options, const Allowed& allowed) {
  auto log_probs = history.word_log_probs();
  std::vector<size_t> order;
  double mass = 0;
  for (size_t word = 0; word < log_probs.size(); ++word) {
    if (std::isinf(log_probs[word]) || (allowed && !allowed(static_cast<int32_t>(word)))) continue;
    order.push_back(word);
    mass += std::exp(log_probs[word]);
  }
  std::stable_sort(order.begin(), order.end(),
                   [&](size_t a, size_t b) { return log_probs[a] > log_probs[b]; });
  std::vector<double> result(log_probs.size(), 0.0);
  double before = 0;
  for (size_t rank = 0; rank < order.size(); ++rank) {
    if (options.top_k > 0 && static_cast<int64_t>(rank) >= options.top_k) break;
    if (before >= options.top_p * mass) break;
    before += std::exp(log_probs[order[rank]]);
    result[order[rank]] = std::exp(log_probs[order[rank]] / options.temperature);
  }
  const double total = std::accumulate(result.begin(), result.end(), 0.0);
  for (double& probability : result) probability /= total;
  return result;
}

/// The chi-square statistic must stay below its mean by less than five standard deviations; the seeds are
/// fixed, so it either always does or never.
void expect_distribution(const std::vector<int64_t>& counts, const std::vector<double>& probabilities,
                         const std::string& what) {
  const auto total = static_cast<double>(std::accumulate(counts.begin(), counts.end(), int64_t{0}));
  double chi_square = 0;
  double cells = 0;
  double rare_count = 0;  // words expected less than five times make one cell
  double rare_expected = 0;
  for (size_t word = 0; word < counts.size(); ++word) {
    const double mean = total * probabilities[word];
    const auto count = static_cast<double>(counts[word]);
    if (mean == 0) {
      ASSERT_EQ(counts[word], 0) << what << ": word " << word << " can't be drawn";
    } else if (mean < 5) {
      rare_count += count;
      rare_expected += mean;
    } else {
      chi_square += (count - mean) * (count - mean) / mean;
      ++cells;
    }
  }
  if (rare_expected > 0) {
    chi_square += (rare_count - rare_expected) * (rare_count - rare_expected) / rare_expected;
    ++cells;
  }
  const double freedom = cells - 1;
  EXPECT_LE(chi_square, freedom + 5 * std::sqrt(2 * freedom) + 5) << what << ", " << cells << " cells";
}

void expect_first_words(const ScriptedScorer& scorer, SamplingOptions options, const Allowed& allowed,
                        const std::string& what) {
  History history(scorer);
  history.feed(scorer.end_of_sentence());
  history.feed(1);
  std::vector<int64_t> counts(static_cast<size_t>(scorer.words()));
  for (const Output& output : draw(scorer, options, {1}, allowed)) {
    ++counts[static_cast<size_t>(output.tokens.at(0))];
    ASSERT_EQ(output.log_prob, history.word_log_probs()[static_cast<size_t>(output.tokens[0])]);
  }
  expect_distribution(counts, expected(history, options, allowed), what);
}

struct Shape {
  int32_t words, shortlist, clusters;
};

TEST(Sampling, DrawsFromTheModelsDistributionAtEveryTemperature) {
  uint32_t seed = 0;
  for (const Shape shape : {Shape{40, 8, 5}, Shape{40, 0, 40}, Shape{30, 30, 0}, Shape{50, 3, 2}}) {
    for (const Tables tables : {Tables::smooth, Tables::zeros}) {
      const ScriptedScorer scorer(random_shape(shape.words, shape.shortlist, shape.clusters, seed), tables,
                                  seed);
      for (const double temperature : {1.0, 0.4, 2.0, 10.0}) {
        SamplingOptions options = sampling(20'000);
        options.temperature = temperature;
        options.seed = ++seed;
        expect_first_words(scorer, options, {}, "temperature " + std::to_string(temperature));
      }
    }
  }
}

TEST(Sampling, RescalesOverTheWordsThatAreAllowed) {
  const ScriptedScorer scorer(random_shape(40, 8, 5, 3), Tables::smooth, 3);
  const Allowed allowed = [](int32_t word) { return word % 3 != 0; };
  for (const double temperature : {1.0, 0.5, 3.0}) {
    SamplingOptions options = sampling(20'000);
    options.temperature = temperature;
    expect_first_words(scorer, options, allowed, "a third of the words suppressed");
  }
}

TEST(Sampling, MinLengthKeepsTheEndOutOfTheDraw) {
  for (const int32_t shortlist : {40, 0}) {  // the end symbol at the root, or in a cluster
    const ScriptedScorer scorer(random_shape(40, shortlist, std::min(40 - shortlist, 4), 4), Tables::smooth,
                                4);
    const Allowed no_end = [&](int32_t word) { return word != scorer.end_of_sentence(); };
    for (const double top_p : {1.0, 0.8}) {
      SamplingOptions options = sampling(20'000);
      options.length.min_length = 1;
      options.top_p = top_p;
      History history(scorer);
      history.feed(scorer.end_of_sentence());
      std::vector<int64_t> counts(40);
      for (const Output& output : draw(scorer, options)) ++counts[static_cast<size_t>(output.tokens.at(0))];
      expect_distribution(counts, expected(history, options, no_end), "no end");
    }
  }
}

TEST(Sampling, CutsToTheBestWordsByNumberAndByProbability) {
  uint32_t seed = 0;
  for (const Shape shape : {Shape{300, 8, 9}, Shape{200, 0, 7}, Shape{30, 30, 0}}) {
    ++seed;
    const ScriptedScorer scorer(random_shape(shape.words, shape.shortlist, shape.clusters, seed),
                                Tables::smooth, seed);
    for (const auto& [top_k, top_p] : {std::pair<int64_t, double>{5, 1},
                                       {1, 1},
                                       {0, 0.3},
                                       {0, 0.95},
                                       {0, 1e-9},
                                       {100, 0.999},
                                       {1000, 1},
                                       {0, 0.9999999}}) {
      for (const double temperature : {1.0, 0.5, 2.0}) {
        SamplingOptions options = sampling(10'000);
        options.top_k = top_k;
        options.top_p = top_p;
        options.temperature = temperature;
        options.seed = ++seed;
        const Allowed allowed = [&](int32_t word) { return seed % 2 == 0 || word % 7 != 3; };
        expect_first_words(scorer, options, allowed,
                           "top-k " + std::to_string(top_k) + ", top-p " + std::to_string(top_p));
      }
    }
  }
}

TEST(Sampling, DrawsWholeSequencesWithTheirProbability) {
  const ScriptedScorer scorer(random_shape(6, 2, 2, 5), Tables::smooth, 5);
  SamplingOptions options = sampling(60'000, 3);
  BeamOptions all;
  all.beam = 1000;
  all.nbest = 1000;
  all.length.max_length = 3;
  std::map<std::vector<int32_t>, size_t> index;
  std::vector<double> probabilities;
  for (const Output& output : exhaustive_search(scorer, {}, all)) {
    index.emplace(output.tokens, probabilities.size());
    probabilities.push_back(std::exp(output.log_prob));
  }
  EXPECT_NEAR(std::accumulate(probabilities.begin(), probabilities.end(), 0.0), 1, 1e-5);
  std::vector<int64_t> counts(probabilities.size());
  for (const Output& output : draw(scorer, options)) {
    ++counts[index.at(output.tokens)];
    ASSERT_EQ(output.finished, output.tokens.back() == scorer.end_of_sentence());
  }
  expect_distribution(counts, probabilities, "sequences");
}

TEST(Sampling, ASampleDependsOnItsInputAndItsNumberAlone) {
  const ScriptedScorer scorer(random_shape(60, 6, 5, 6), Tables::smooth, 6);
  std::vector<std::vector<int32_t>> prompts;
  for (int32_t i = 0; i < 11; ++i) prompts.push_back(std::vector<int32_t>(static_cast<size_t>(i % 4), i));
  for (const auto& [top_k, top_p] : {std::pair<int64_t, double>{0, 1}, {4, 1}, {0, 0.9}}) {
    DecoderSettings settings;
    SamplingOptions options = sampling(5, 9);
    options.temperature = 1.5;
    options.top_k = top_k;
    options.top_p = top_p;
    settings.task = options;
    settings.batch = 1;
    const Results alone = decode(scorer, settings, prompts);
    for (const int64_t batch : {3, 32}) {
      for (const int64_t expansions : {1, 4, 0}) {
        settings.batch = batch;
        settings.expansions = expansions;
        EXPECT_EQ(decode(scorer, settings, prompts, 3).blocks, alone.blocks);
      }
    }
    options.samples = 2;
    settings.task = options;
    const Results fewer = decode(scorer, settings, prompts);
    for (size_t i = 0; i < prompts.size(); ++i) {
      EXPECT_TRUE(std::equal(fewer.blocks[i].outputs.begin(), fewer.blocks[i].outputs.end(),
                             alone.blocks[i].outputs.begin()));
    }
    options.seed = 2;
    settings.task = options;
    EXPECT_NE(decode(scorer, settings, prompts).blocks, fewer.blocks);
  }
}

TEST(Sampling, DifferentInputsWithTheSamePromptDrawDifferently) {
  const ScriptedScorer scorer(random_shape(60, 6, 5, 7), Tables::smooth, 7);
  DecoderSettings settings;
  settings.task = sampling(1, 12);
  const Results results = decode(scorer, settings, {{1}, {1}});
  EXPECT_NE(results.blocks[0].outputs, results.blocks[1].outputs);
}

TEST(Sampling, NeedsOneExpansionAWordAtTemperatureOne) {
  const ScriptedScorer scorer(random_shape(500, 0, 20, 8), Tables::smooth, 8);
  DecoderSettings settings;
  settings.task = sampling(200, 20);
  ThreadPool pool(1);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  PromptsInMemory feed(std::vector<std::vector<int32_t>>(3));
  Results results;
  decoder.run(feed, results);
  EXPECT_LE(decoder.stats().expansions, decoder.stats().tokens + 3);
}

TEST(Sampling, AnExtremeTemperatureStillEndsAndDrawsTheBestWord) {
  const ScriptedScorer scorer(random_shape(80, 4, 6, 9), Tables::smooth, 9);
  SamplingOptions options = sampling(50);
  options.temperature = 1e-4;
  const auto log_probs = [&] {
    History history(scorer);
    history.feed(scorer.end_of_sentence());
    return history.word_log_probs();
  }();
  const auto best = std::max_element(log_probs.begin(), log_probs.end()) - log_probs.begin();
  for (const Output& output : draw(scorer, options)) EXPECT_EQ(output.tokens.at(0), best);
  options.temperature = 1e9;  // nearly uniform
  const auto outputs = draw(scorer, options);
  EXPECT_EQ(outputs.size(), 50);
}

TEST(Sampling, WhereNoWordIsPossibleThereIsNoOutput) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 10), Tables::smooth, 10);
  for (const int64_t top_k : {0, 3}) {
    SamplingOptions options = sampling(5);
    options.top_k = top_k;
    EXPECT_TRUE(draw(scorer, options, {}, [](int32_t) { return false; }).empty());
  }
}

TEST(Sampling, LengthZeroGivesEmptyOutputs) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 11), Tables::smooth, 11);
  const auto outputs = draw(scorer, sampling(3, 0));
  ASSERT_EQ(outputs.size(), 3);
  EXPECT_EQ(outputs[0], (Output{{}, 0, 0, false}));
}

TEST(Sampling, OptionsOutOfRangeAreRefused) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 12), Tables::smooth, 12);
  const auto refused = [&](const std::function<void(SamplingOptions&)>& change) {
    SamplingOptions options = sampling(1);
    change(options);
    EXPECT_THROW(draw(scorer, options), UsageError);
  };
  refused([](SamplingOptions& o) { o.samples = 0; });
  refused([](SamplingOptions& o) { o.temperature = 0; });
  refused([](SamplingOptions& o) { o.temperature = std::numeric_limits<double>::quiet_NaN(); });
  refused([](SamplingOptions& o) { o.top_k = -1; });
  refused([](SamplingOptions& o) { o.top_p = 0; });
  refused([](SamplingOptions& o) { o.top_p = 1.5; });
}

}  // namespace
}  // namespace hsm::testing
