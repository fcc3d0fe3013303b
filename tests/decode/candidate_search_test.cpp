#include "decode/candidate_search.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <functional>
#include <limits>
#include <random>
#include <vector>

#include "decode/scripted_scorer.h"

namespace hsm::testing {
namespace {

constexpr uint64_t kPlenty = uint64_t{64} << 20;

bool same(const Candidate& a, const Candidate& b) {
  return a.score == b.score && a.word == b.word && a.parent == b.parent;
}

/// Some hypotheses with random pasts, ready to be asked about.
struct Bench {
  Bench(const Scorer& scorer, int64_t hypotheses, int64_t expansions, int64_t queries, uint32_t seed,
        const std::function<bool(int32_t)>& allowed = {})
      : pool(2),
        arena(kPlenty),
        filter(arena, scorer.words(), allowed),
        rows(arena, scorer, hypotheses, pool),
        expander(arena, scorer, expansions),
        search(arena, rows, expander, filter, queries, hypotheses) {
    std::mt19937 random(seed);
    std::vector<RowSource> sources(static_cast<size_t>(hypotheses));
    for (int step = 0; step < 3; ++step) {
      for (int32_t row = 0; row < hypotheses; ++row) {
        auto& source = sources[static_cast<size_t>(row)];
        source = {step == 0 ? kZeroState : row,
                  static_cast<int32_t>(random() % static_cast<uint32_t>(scorer.words()))};
        if (step == 0) histories.emplace_back(scorer);
        histories[static_cast<size_t>(row)].feed(source.token);
      }
      rows.step(sources, hypotheses);
    }
    for (int64_t i = 0; i < hypotheses; ++i) scores.push_back(-0.25 * static_cast<double>(random() % 12));
    std::sort(scores.rbegin(), scores.rend());
  }

  /// Every word of hypotheses [first, end), ranked.
  [[nodiscard]] std::vector<Candidate> ranking(size_t first, size_t end) const {
    std::vector<Candidate> all;
    for (size_t i = first; i < end; ++i) {
      const auto log_probs = histories[i].word_log_probs();
      for (size_t word = 0; word < log_probs.size(); ++word) {
        const double score = scores[i] + log_probs[word];
        if (score == -std::numeric_limits<double>::infinity() || !filter.allows(static_cast<int32_t>(word)))
          continue;
        all.push_back({score, static_cast<int32_t>(word), static_cast<int32_t>(i - first)});
      }
    }
    std::sort(all.begin(), all.end(), better);
    return all;
  }

  ThreadPool pool;
  Arena arena;
  WordFilter filter;
  RowBatch rows;
  Expander expander;
  CandidateSearch search;
  std::vector<History> histories;
  std::vector<double> scores;
};

TEST(CandidateSearch, EqualsRankingEveryWordForAnyNumberOfExpansionsAtATime) {
  std::mt19937 random(5);
  constexpr Tables kTables[] = {Tables::smooth, Tables::coarse, Tables::zeros};
  for (uint32_t round = 0; round < 150; ++round) {
    const auto words = static_cast<int32_t>(3 + random() % 80);
    const auto shortlist = static_cast<int32_t>(random() % static_cast<uint32_t>(words));
    const auto clusters = std::min<int32_t>(words - shortlist, 1 + static_cast<int32_t>(random() % 20));
    const ScriptedScorer scorer(random_shape(words, shortlist, clusters, round), kTables[round % 3], round);
    constexpr int64_t kExpansions[] = {1, 2, 5, 1000};
    const auto hypotheses = static_cast<size_t>(1 + random() % 20);
    const auto limit = static_cast<size_t>(1 + random() % 30);
    const auto split = random() % hypotheses;  // two queries at once
    Bench bench(scorer, static_cast<int64_t>(hypotheses), kExpansions[round % 4], 2, round,
                [&](int32_t word) { return word != static_cast<int32_t>(round) % words; });

    std::vector<Candidate> memory(2 * (limit + hypotheses));
    std::vector<CandidateQuery> queries;
    for (const auto& [first, end] : {std::pair{size_t{0}, split}, std::pair{split, hypotheses}}) {
      if (first == end) continue;
      const std::span own =
          std::span(memory).subspan(queries.size() * (limit + hypotheses), limit + hypotheses);
      CandidateQuery query;
      query.first_row = static_cast<int64_t>(first);
      query.scores = std::span(bench.scores).subspan(first, end - first);
      query.words = BestCandidates(own.first(limit));
      query.ends = BestCandidates(own.subspan(limit));
      queries.push_back(query);
    }
    bench.search.run(queries);
    for (CandidateQuery& query : queries) {
      const auto first = static_cast<size_t>(query.first_row);
      const auto ranking = bench.ranking(first, first + query.scores.size());
      std::vector<Candidate> expected_words;
      std::vector<Candidate> expected_ends;
      for (const Candidate& candidate : ranking) {
        auto& list = candidate.word == scorer.end_of_sentence() ? expected_ends : expected_words;
        if (&list == &expected_ends || list.size() < limit) list.push_back(candidate);
      }
      const auto found = query.words.sort();
      ASSERT_TRUE(std::equal(found.begin(), found.end(), expected_words.begin(), expected_words.end(), same))
          << "round " << round;
      // Of the end symbols, those count that could be among the best `limit` of all.
      const auto out_of_reach = [&](const Candidate& end) {
        return expected_words.size() == limit && better(expected_words.back(), end);
      };
      std::erase_if(expected_ends, out_of_reach);
      const auto ends = query.ends.sort();
      const auto reached = std::find_if(ends.begin(), ends.end(), out_of_reach);
      ASSERT_TRUE(std::equal(ends.begin(), reached, expected_ends.begin(), expected_ends.end(), same));
    }
  }
}

TEST(CandidateSearch, ExpandsFewClustersOfAPeakedDistribution) {
  constexpr int32_t kWords = 1000;
  constexpr int32_t kClusters = 50;
  ScriptedScorer scorer(random_shape(kWords, 0, kClusters, 1), Tables::smooth, 1);
  std::vector<float> root(kClusters, -12.0F);
  root[7] = -0.01F;
  scorer.set_root(root);
  Bench bench(scorer, 8, 64, 1, 1);
  std::vector<Candidate> memory(16);
  CandidateQuery query;
  query.scores = bench.scores;
  query.words = BestCandidates(std::span(memory).first(8));
  query.ends = BestCandidates(std::span(memory).subspan(8));
  bench.search.run({&query, 1});
  EXPECT_LE(bench.expander.total(), 8);
  EXPECT_EQ(bench.search.possible_expansions(), 8 * kClusters);
  const auto ranking = bench.ranking(0, 8);
  const auto found = query.words.sort();
  ASSERT_EQ(found.size(), 8);
  EXPECT_TRUE(std::equal(found.begin(), found.end(), ranking.begin(), same));
}

// The only way in which the order of ties could be lost: a cluster whose bound equals the worst kept score
// holds a word with a smaller id.
TEST(CandidateSearch, ExpandsAClusterWhoseBoundOnlyTiesWithTheWorstKept) {
  ScriptedShape shape;
  shape.shortlist = {5, 6, 2};
  shape.clusters = {{3, 1}, {0, 4}};
  shape.end = 2;
  ScriptedScorer scorer(shape, Tables::smooth, 1);
  scorer.set_root(std::vector<float>{-1, -1, -9, -1, -1});
  scorer.set_leaves(0, std::vector<float>{0, 0});
  scorer.set_leaves(1, std::vector<float>{0, -3});
  Bench bench(scorer, 1, 1, 1, 1);
  bench.scores[0] = 0;
  std::vector<Candidate> memory(3);
  CandidateQuery query = query_for_row(0, memory);
  query.scores = bench.scores;
  bench.search.run({&query, 1});
  const auto found = query.words.sort();
  ASSERT_EQ(found.size(), 2);
  EXPECT_EQ(found[0].word, 0);
  EXPECT_EQ(found[1].word, 1);
}

TEST(BestCandidates, NeverTakesProbabilityZero) {
  std::vector<Candidate> memory(3);
  BestCandidates best(memory);
  best.offer({-std::numeric_limits<double>::infinity(), 1, 0});
  best.offer({-5, 2, 0});
  EXPECT_EQ(best.floor(), -std::numeric_limits<double>::infinity());
  EXPECT_EQ(best.sort().size(), 1);
}

}  // namespace
}  // namespace hsm::testing
