#include "decode/network_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <limits>
#include <map>
#include <random>

#include "base/error.h"
#include "decode/oracle.h"
#include "decode/run_decoder.h"
#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

/// Networks from memory, each after a prompt.
class NetworksInMemory : public PromptFeed {
 public:
  explicit NetworksInMemory(std::vector<Prompt> inputs) : inputs_(std::move(inputs)) {}

  Status take(Prompt& prompt, bool /*wait*/) override {
    if (next_ == inputs_.size()) return Status::end;
    prompt = inputs_[next_];
    prompt.number = static_cast<int64_t>(next_++);
    return Status::ready;
  }

 private:
  std::vector<Prompt> inputs_;
  size_t next_ = 0;
};

std::vector<Results::Block> search(const Scorer& scorer, const DecoderSettings& settings,
                                   std::vector<Prompt> inputs, int threads = 1) {
  ThreadPool pool(threads);
  const CpuDecodeDevice device(scorer, pool);
  Decoder decoder(device, settings);
  NetworksInMemory feed(std::move(inputs));
  Results results;
  decoder.run(feed, results);
  return results.blocks;
}

std::vector<Results::Block> search(const Scorer& scorer, const NetworkOptions& options, const Prompt& input) {
  DecoderSettings settings;
  settings.task = options;
  return search(scorer, settings, {input});
}

Network::Alternative alternative(double score, std::vector<int32_t> tokens) {
  return {"text", score, std::move(tokens), 0};
}

/// Up to `positions` positions of up to four alternatives of no word, one or several.
Prompt random_network(std::mt19937& random, size_t positions, int32_t words) {
  const auto below = [&](uint32_t limit) { return random() % limit; };
  Prompt prompt;
  for (uint32_t i = below(3); i > 0; --i) {
    prompt.tokens.push_back(static_cast<int32_t>(below(static_cast<uint32_t>(words))));
  }
  prompt.network.positions.resize(positions);
  for (auto& position : prompt.network.positions) {
    position.resize(1 + below(4));
    for (auto& choice : position) {
      // A few scores and words only, so that different paths come to the same words and the same sums.
      choice.score = -0.25 * below(8);
      constexpr uint32_t kLengths[] = {0, 1, 1, 1, 2, 4};
      choice.tokens.resize(kLengths[below(6)]);
      for (int32_t& token : choice.tokens) token = static_cast<int32_t>(3 + below(4));
      choice.unknown = choice.tokens.empty() ? 0 : static_cast<int32_t>(below(2));
    }
  }
  return prompt;
}

struct OraclePath {
  std::vector<int32_t> choices;
  std::vector<int32_t> words;
  double channel = 0;
  int64_t unknown = 0;
};

PathOutput scored(const OraclePath& path, const Scorer& scorer, const std::vector<int32_t>& prompt,
                  const NetworkOptions& options, bool with_end) {
  std::vector<int32_t> tokens = path.words;
  if (with_end) tokens.push_back(scorer.end_of_sentence());
  PathOutput output{path.choices, 0, path.channel, 0, static_cast<int64_t>(path.words.size()), path.unknown};
  for (const double log_prob : token_log_probs(scorer, prompt, tokens)) output.log_prob += log_prob;
  const double bonus = options.word_bonus * static_cast<double>(path.words.size()) -
                       options.oov_penalty * static_cast<double>(path.unknown);
  output.score = path.channel + options.lm_weight * output.log_prob + bonus;
  return output;
}

OraclePath longer(const OraclePath& path, const std::vector<Network::Alternative>& position, size_t choice) {
  OraclePath result = path;
  const Network::Alternative& taken = position[choice];
  result.choices.push_back(static_cast<int32_t>(choice));
  result.words.insert(result.words.end(), taken.tokens.begin(), taken.tokens.end());
  result.channel += taken.score;
  result.unknown += taken.unknown;
  return result;
}

/// The plain way: every path is made longer by every alternative and scored from its words; of each text the
/// first best is kept, and of those the best `beam` (all, when that is 0).
std::vector<PathOutput> plain_search(const Scorer& scorer, const Prompt& input, const NetworkOptions& options,
                                     size_t beam) {
  std::vector<OraclePath> live(1);
  for (const auto& position : input.network.positions) {
    std::vector<std::pair<double, OraclePath>> candidates;
    for (const OraclePath& path : live) {
      for (size_t choice = 0; choice < position.size(); ++choice) {
        OraclePath candidate = longer(path, position, choice);
        const double score = scored(candidate, scorer, input.tokens, options, false).score;
        candidates.emplace_back(score, std::move(candidate));
      }
    }
    std::stable_sort(candidates.begin(), candidates.end(),
                     [](const auto& a, const auto& b) { return a.first > b.first; });
    live.clear();
    for (auto& [score, candidate] : candidates) {
      const bool known = std::any_of(live.begin(), live.end(),
                                     [&](const OraclePath& path) { return path.words == candidate.words; });
      if (!known && (beam == 0 || live.size() < beam)) live.push_back(std::move(candidate));
    }
  }
  std::vector<PathOutput> outputs;
  for (const OraclePath& path : live) outputs.push_back(scored(path, scorer, input.tokens, options, true));
  std::stable_sort(outputs.begin(), outputs.end(),
                   [](const PathOutput& a, const PathOutput& b) { return a.score > b.score; });
  outputs.resize(std::min(outputs.size(), static_cast<size_t>(options.nbest)));
  return outputs;
}

TEST(NetworkSearch, FindsTheBestOfAllPathsWhenTheBeamHoldsThemAll) {
  std::mt19937 random(1);
  for (uint32_t seed = 0; seed < 30; ++seed) {
    const ScriptedScorer scorer(random_shape(20, 4, 3, seed), Tables::smooth, seed);
    const Prompt input = random_network(random, 1 + seed % 4, 20);
    const NetworkOptions options{300, 300, 0.5 + 0.1 * (seed % 7), 0.3 * (seed % 3) - 0.3, 0.2 * (seed % 2),
                                 10};
    const auto blocks = search(scorer, options, input);
    ASSERT_EQ(blocks.size(), 1);
    EXPECT_EQ(blocks[0].paths, plain_search(scorer, input, options, 0)) << seed;
  }
}

TEST(NetworkSearch, EqualsAPlainBeamSearchToTheTieForEveryBatchBudgetAndThread) {
  std::mt19937 random(2);
  for (uint32_t seed = 0; seed < 12; ++seed) {
    const Tables tables = seed % 2 == 0 ? Tables::smooth : Tables::coarse;
    const ScriptedScorer scorer(random_shape(30, 5, 4, seed), tables, seed);
    const NetworkOptions options{1 + seed % 5, 1 + seed % 3 % (1 + seed % 5), 0.8, 0.25, 0.5, 12};
    std::vector<Prompt> inputs;
    for (size_t i = 0; i < 9; ++i) inputs.push_back(random_network(random, (seed + i) % 12, 30));
    std::vector<std::vector<PathOutput>> expected;
    for (const Prompt& input : inputs) {
      expected.push_back(plain_search(scorer, input, options, static_cast<size_t>(options.beam)));
    }
    DecoderSettings settings;
    settings.task = options;
    for (const int64_t batch : {1, 3, 0}) {
      for (const int64_t expansions : {1, 3, 0}) {
        settings.batch = batch;
        settings.expansions = expansions;
        const auto blocks = search(scorer, settings, inputs, batch == 3 ? 3 : 1);
        ASSERT_EQ(blocks.size(), inputs.size());
        for (size_t i = 0; i < inputs.size(); ++i) {
          EXPECT_EQ(blocks[i].paths, expected[i]) << seed << ", input " << i << ", batch " << batch;
        }
      }
    }
  }
}

TEST(NetworkSearch, WithoutAModelTheChannelDecides) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 7), Tables::smooth, 7);
  Prompt input;
  input.network.positions = {{alternative(-3, {5}), alternative(-1, {6})},
                             {alternative(-0.5, {}), alternative(-2, {4, 4})}};
  const auto best = search(scorer, NetworkOptions{4, 1, 0, 0, 0, 10}, input).at(0).paths.at(0);
  EXPECT_EQ(best.choices, (std::vector<int32_t>{1, 0}));
  EXPECT_EQ(best.score, -1.5);
  const auto more_words = search(scorer, NetworkOptions{4, 1, 0, 1, 0, 10}, input).at(0).paths.at(0);
  EXPECT_EQ(more_words.choices, (std::vector<int32_t>{1, 1}));  // two words more at a bonus of 1 each
}

TEST(NetworkSearch, PathsOfTheSameWordsAreOneAndTheirBestChannelCounts) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 8), Tables::smooth, 8);
  Prompt input;
  input.network.positions = {{alternative(-1, {5}), alternative(-2, {})},
                             {alternative(-4, {5}), alternative(-0.5, {}), alternative(-3, {6})}};
  const auto paths = search(scorer, NetworkOptions{10, 10, 1, 0, 0, 10}, input).at(0).paths;
  ASSERT_EQ(paths.size(), 5);  // "5 5", "5", "5 6", "", "6": "5" only once
  for (const PathOutput& path : paths) {
    EXPECT_NE(path.choices, (std::vector<int32_t>{1, 0}));  // the same word, at −6
  }
}

TEST(NetworkSearch, ANetworkWithoutPositionsIsAnEmptySentence) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 9), Tables::smooth, 9);
  Prompt input;
  input.tokens = {5, 6};
  const auto paths = search(scorer, NetworkOptions{3, 3, 1, 0, 0, 10}, input).at(0).paths;
  ASSERT_EQ(paths.size(), 1);
  EXPECT_TRUE(paths[0].choices.empty());
  EXPECT_EQ(paths[0].log_prob, token_log_probs(scorer, input.tokens, {scorer.end_of_sentence()})[0]);
}

TEST(NetworkSearch, APathOfProbabilityZeroIsNeverOutput) {
  ScriptedShape shape;
  shape.shortlist = {0, 1, 2};
  ScriptedScorer scorer(shape, Tables::smooth, 1);
  scorer.set_root(std::vector<float>{-1, -0.5F, -std::numeric_limits<float>::infinity()});
  Prompt input;
  input.network.positions = {{alternative(0, {2}), alternative(-9, {1})}};
  for (const double weight : {0.0, 1.0}) {
    const auto paths = search(scorer, NetworkOptions{3, 3, weight, 0, 0, 10}, input).at(0).paths;
    ASSERT_EQ(paths.size(), 1);
    EXPECT_EQ(paths[0].choices, (std::vector<int32_t>{1}));
  }
  input.network.positions[0].pop_back();
  EXPECT_TRUE(search(scorer, NetworkOptions{3, 3, 1, 0, 0, 10}, input).at(0).paths.empty());
}

TEST(NetworkSearch, LongNetworksKeepToTheLeastBudgetAndGiveTheSameResults) {
  std::mt19937 random(3);
  const ScriptedScorer scorer(random_shape(40, 5, 6, 3), Tables::smooth, 3);
  const Prompt input = random_network(random, 400, 40);
  DecoderSettings settings;
  settings.task = NetworkOptions{4, 2, 1, 0, 0, 400};
  const auto ample = search(scorer, settings, {input});
  settings.memory_budget = 1;
  try {
    search(scorer, settings, {input});
    FAIL() << "a budget of one byte was enough";
  } catch (const ResourceError& error) {
    const std::string message = error.what();
    settings.memory_budget = std::stoull(message.substr(message.find("at least ") + 9));
  }
  EXPECT_EQ(search(scorer, settings, {input, input})[1].paths, ample[0].paths);
}

TEST(NetworkSearch, OptionsOutOfRangeAreRefused) {
  const ScriptedScorer scorer(random_shape(20, 4, 3, 9), Tables::smooth, 9);
  constexpr double kInfinity = std::numeric_limits<double>::infinity();
  for (const NetworkOptions& options :
       {NetworkOptions{0, 1, 1, 0, 0, 9}, NetworkOptions{2, 3, 1, 0, 0, 9}, NetworkOptions{2, 1, -1, 0, 0, 9},
        NetworkOptions{2, 1, kInfinity, 0, 0, 9}, NetworkOptions{2, 1, 1, kInfinity, 0, 9},
        NetworkOptions{2, 1, 1, 0, 0, 0}}) {
    EXPECT_THROW(search(scorer, options, {}), UsageError);
  }
}

}  // namespace
}  // namespace hsm::testing
