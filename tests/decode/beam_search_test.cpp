#include "decode/beam_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <random>

#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

constexpr Tables kAllTables[] = {Tables::smooth, Tables::coarse, Tables::zeros};
constexpr double kPenalties[] = {0, 0.6, 1, 2.5, -0.7, -2};

struct Case {
  BeamOptions options;
  std::vector<int32_t> suppressed;
  std::vector<int32_t> prompt;

  [[nodiscard]] Allowed allowed() const {
    return [words = suppressed](int32_t word) {
      return std::find(words.begin(), words.end(), word) == words.end();
    };
  }
};

Case random_case(std::mt19937& random, int32_t words, int64_t beam, int64_t longest) {
  Case c;
  c.options.beam = beam;
  c.options.nbest = 1 + static_cast<int64_t>(random()) % beam;
  c.options.length.max_length = static_cast<int64_t>(random()) % (longest + 1);
  c.options.length.min_length =
      random() % 3 == 0 ? static_cast<int64_t>(random()) % (c.options.length.max_length + 1) : 0;
  c.options.length.length_penalty = kPenalties[random() % std::size(kPenalties)];
  c.options.token_scores = true;
  for (size_t i = random() % 3; i > 0; --i)
    c.suppressed.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(words)));
  for (size_t i = random() % 4; i > 0; --i)
    c.prompt.push_back(static_cast<int32_t>(random() % static_cast<uint32_t>(words)));
  return c;
}

std::vector<Output> search(const Scorer& scorer, const Case& c) {
  DecoderSettings settings;
  settings.task = c.options;
  settings.allowed = c.allowed();
  const Results results = decode(scorer, settings, {c.prompt});
  EXPECT_EQ(results.blocks.size(), 1);
  return results.blocks.at(0).outputs;
}

TEST(BeamSearch, FindsTheBestOfAllOutputsWhenTheBeamHoldsThemAll) {
  std::mt19937 random(1);
  for (uint32_t round = 0; round < 150; ++round) {
    const auto words = static_cast<int32_t>(2 + random() % 4);
    const auto shortlist = static_cast<int32_t>(random() % static_cast<uint32_t>(words + 1));
    const auto clusters = std::min<int32_t>(words - shortlist, 1 + static_cast<int32_t>(random() % 3));
    const ScriptedScorer scorer(random_shape(words, shortlist, clusters, round), kAllTables[round % 3],
                                round);
    const Case c = random_case(random, words, 5 * 5 * 5 * 5, 4);
    ASSERT_EQ(search(scorer, c), exhaustive_search(scorer, c.prompt, c.options, c.allowed()))
        << "round " << round << ", words " << words << ", max_length " << c.options.length.max_length
        << ", penalty " << c.options.length.length_penalty;
  }
}

TEST(BeamSearch, EqualsADenseBeamSearchToTheTie) {
  std::mt19937 random(2);
  constexpr int64_t kBeams[] = {1, 2, 7, 64, 300};
  for (uint32_t round = 0; round < 120; ++round) {
    const auto words = static_cast<int32_t>(5 + random() % 60);
    const auto shortlist = static_cast<int32_t>(random() % 12) % words;
    const auto clusters = std::min<int32_t>(words - shortlist, 1 + static_cast<int32_t>(random() % 9));
    const ScriptedScorer scorer(random_shape(words, shortlist, clusters, round), kAllTables[round % 3],
                                round);
    const Case c = random_case(random, words, kBeams[round % std::size(kBeams)], 9);
    ASSERT_EQ(search(scorer, c), dense_beam_search(scorer, c.prompt, c.options, c.allowed()))
        << "round " << round << ", beam " << c.options.beam << ", words " << words << ", max_length "
        << c.options.length.max_length << ", penalty " << c.options.length.length_penalty;
  }
}

// The search may stop early; the dense one never does. Few outputs of many are asked for, so that it does
// stop, and far from the length limit.
TEST(BeamSearch, StopsEarlyWithoutLosingAnything) {
  std::mt19937 random(3);
  int64_t stopped_early = 0;
  for (uint32_t round = 0; round < 400; ++round) {
    ScriptedScorer scorer(random_shape(8, 4, 2, round), Tables::smooth, round);
    Case c;
    c.options.beam = 1 + static_cast<int64_t>(random() % 5);
    c.options.nbest =
        1 + static_cast<int64_t>(random() % static_cast<uint32_t>(std::min<int64_t>(c.options.beam, 3)));
    c.options.length.max_length = 25;
    c.options.length.min_length = round % 4 == 0 ? 6 : 0;
    c.options.length.length_penalty = kPenalties[round % std::size(kPenalties)];
    c.options.token_scores = false;
    DecoderSettings settings;
    settings.task = c.options;
    ThreadPool pool(1);
    const CpuDecodeDevice device(scorer, pool);
    Decoder decoder(device, settings);
    const std::vector<std::vector<int32_t>> prompts{{1}};
    PromptsInMemory feed(prompts);
    Results results;
    decoder.run(feed, results);
    stopped_early += decoder.stats().steps < 25 ? 1 : 0;
    ASSERT_EQ(results.blocks.at(0).outputs, dense_beam_search(scorer, {1}, c.options))
        << "round " << round << ", beam " << c.options.beam << ", nbest " << c.options.nbest << ", penalty "
        << c.options.length.length_penalty;
  }
  EXPECT_GT(stopped_early, 200);
}

}  // namespace
}  // namespace hsm::testing
