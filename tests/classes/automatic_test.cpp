#include "classes/automatic.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>

#include "base/random.h"
#include "classes/vocabularies.h"

namespace hsm {
namespace {

TEST(StepCost, IsTheExpectationOverRandomBatches) {
  // Batches are drawn, and each cluster that is hit pays what it costs when that is certain; the mean must be
  // the closed form.
  const Vocabulary vocabulary = zipf_vocabulary(300, 400);
  const WordClasses classes = frequency_classes(vocabulary, BinWeight::square_root, 20, 12);
  const std::vector<ClusterLoad> loads = cluster_loads(vocabulary, classes);
  const StepShape step{64, 30};
  // Cost below the root of a cluster that surely has so many tokens.
  const auto certain = [&](int64_t words, int64_t tokens) {
    const ClusterLoad all{words, 1};
    return expected_step_cost({step.head_dim, tokens}, 0, std::vector{all}, 1) -
           expected_step_cost({step.head_dim, tokens}, 1, {}, 1);
  };
  const CounterRandom random(5, Purpose::sampling);
  std::vector<double> cumulative;
  double total = 0;
  for (const ClusterLoad& load : loads) cumulative.push_back(total += static_cast<double>(load.count));
  const auto all = static_cast<double>(vocabulary.total_count());
  double simulated = 0;
  constexpr int kTrials = 4000;
  for (uint64_t trial = 0; trial < kTrials; ++trial) {
    std::vector<int64_t> hits(loads.size());
    for (uint64_t token = 0; token < 30; ++token) {
      const double x = random.uniform(trial, token) * all;
      const auto found = std::upper_bound(cumulative.begin(), cumulative.end(), x) - cumulative.begin();
      if (found < static_cast<int64_t>(hits.size())) ++hits[static_cast<size_t>(found)];
    }
    for (size_t c = 0; c < loads.size(); ++c) {
      if (hits[c] > 0) simulated += certain(loads[c].words, hits[c]);
    }
  }
  simulated /= kTrials;
  int64_t shortlist = vocabulary.size();
  for (const ClusterLoad& load : loads) shortlist -= load.words;
  const double leaves = expected_step_cost(step, vocabulary, classes) -
                        expected_step_cost(step, shortlist + classes.clusters, {}, vocabulary.total_count());
  EXPECT_NEAR(leaves, simulated, 0.02 * simulated);
}

TEST(StepCost, AClusterOfOneWordCostsNothingBelowTheRoot) {
  const std::vector<ClusterLoad> one = {{1, 50}};
  EXPECT_EQ(expected_step_cost({10, 10}, 3, one, 100), expected_step_cost({10, 10}, 4, {}, 100));
}

TEST(StepCost, HasTheSameBitsOnEveryMachine) {
  // By sums and products in a fixed order, so that classes are the same wherever they are made.
  EXPECT_EQ(expected_leaf_cost({200, 400}, {100, 5'000}, 929'589), 0x1.0dc98ac16f598p+14);
  EXPECT_EQ(expected_leaf_cost({650, 701}, {37, 3}, 2'088'628), 0x1.5198b810f35c4p+4);
}

double cost_of(const Vocabulary& vocabulary, BinWeight weight, const StepShape& step, ClassSizes sizes) {
  return expected_step_cost(step, vocabulary,
                            frequency_classes(vocabulary, weight, sizes.shortlist, sizes.clusters));
}

TEST(AutomaticSizes, CostNoMoreThanAnyOthers) {
  const CounterRandom random(9, Purpose::shuffle);
  for (const auto& [words, step] : std::vector<std::pair<int64_t, StepShape>>{
           {10'000, {200, 400}}, {30'000, {200, 700}}, {3'000, {650, 20}}, {500, {64, 12'800}}}) {
    const Vocabulary vocabulary = zipf_vocabulary(words);
    for (const BinWeight weight : {BinWeight::count, BinWeight::square_root}) {
      const ClassSizes sizes = choose_class_sizes(vocabulary, weight, step, {});
      const double chosen = cost_of(vocabulary, weight, step, sizes);
      const int64_t shortest = std::min<int64_t>(200, words / 10);
      EXPECT_GE(sizes.shortlist, shortest);
      for (uint64_t trial = 0; trial < 40; ++trial) {
        // Between the least shortlist and half the words, evenly in the logarithm.
        const double span = std::log(static_cast<double>(words) / 2 / static_cast<double>(shortest));
        const auto shortlist =
            static_cast<int64_t>(static_cast<double>(shortest) * std::exp(span * random.uniform(trial, 0)));
        const auto clusters = static_cast<int64_t>(
            std::exp(std::log(static_cast<double>(words) / 2) * random.uniform(trial, 1)));
        // The grid is coarse, so others may be better by a little.
        EXPECT_LE(chosen, 1.02 * cost_of(vocabulary, weight, step, {shortlist, clusters}))
            << words << " words, " << sizes.shortlist << "/" << sizes.clusters << " against " << shortlist
            << "/" << clusters;
      }
    }
  }
}

TEST(AutomaticSizes, WhatIsGivenStays) {
  const Vocabulary vocabulary = zipf_vocabulary(5'000);
  const StepShape step{200, 400};
  const ClassSizes both = choose_class_sizes(vocabulary, BinWeight::count, step, {7, 9});
  EXPECT_EQ(both.shortlist, 7);
  EXPECT_EQ(both.clusters, 9);
  const ClassSizes by_shortlist = choose_class_sizes(vocabulary, BinWeight::count, step, {.shortlist = 50});
  EXPECT_EQ(by_shortlist.shortlist, 50);
  for (const int64_t clusters : {10, 60, 200, 800}) {
    EXPECT_LE(cost_of(vocabulary, BinWeight::count, step, by_shortlist),
              1.02 * cost_of(vocabulary, BinWeight::count, step, {50, clusters}));
  }
  const ClassSizes by_clusters = choose_class_sizes(vocabulary, BinWeight::count, step, {.clusters = 300});
  EXPECT_EQ(by_clusters.clusters, 300);
  for (const int64_t shortlist : {200, 500, 1200, 2400}) {
    EXPECT_LE(cost_of(vocabulary, BinWeight::count, step, by_clusters),
              1.02 * cost_of(vocabulary, BinWeight::count, step, {shortlist, 300}));
  }
}

TEST(AutomaticSizes, LeaveRoomBelowALimitOnClusters) {
  const Vocabulary vocabulary = zipf_vocabulary(5'000);
  for (const int64_t largest : {1, 2, 15, 100, 10'000}) {
    const ClassSizes sizes =
        choose_class_sizes(vocabulary, BinWeight::square_root, {200, 400}, {.largest = largest});
    const int64_t binned = RankedWords(vocabulary, BinWeight::square_root).size() -
                           RankedWords(vocabulary, BinWeight::square_root).first_binned(sizes.shortlist);
    EXPECT_LE(sizes.clusters, binned);
    EXPECT_GE(2 * largest * sizes.clusters, largest == 1 ? 2 * binned : 3 * binned) << largest;
  }
  EXPECT_LE(choose_class_sizes(vocabulary, BinWeight::square_root, {200, 400}, {.most_clusters = 9}).clusters,
            9);
}

TEST(AutomaticSizes, AShortlistLeavesTheWordsThatClustersNeed) {
  const Vocabulary vocabulary = zipf_vocabulary(1'000);
  for (const int64_t clusters : {950, 997, 998}) {
    const ClassSizes sizes =
        choose_class_sizes(vocabulary, BinWeight::square_root, {200, 400}, {.clusters = clusters});
    EXPECT_NO_THROW(frequency_classes(vocabulary, BinWeight::square_root, sizes.shortlist, sizes.clusters))
        << clusters << " clusters, shortlist " << sizes.shortlist;
  }
}

TEST(AutomaticSizes, FollowTheStep) {
  const Vocabulary vocabulary = zipf_vocabulary(30'000);
  const ClassSizes small = choose_class_sizes(vocabulary, BinWeight::square_root, {200, 20}, {});
  const ClassSizes large = choose_class_sizes(vocabulary, BinWeight::square_root, {200, 12'800}, {});
  EXPECT_NE(small.shortlist * 100'000 + small.clusters, large.shortlist * 100'000 + large.clusters);
}

TEST(AutomaticSizes, ExistForTheSmallestVocabularies) {
  for (int64_t words = 3; words < 40; ++words) {
    const Vocabulary vocabulary = zipf_vocabulary(words, 30);
    const ClassSizes sizes = choose_class_sizes(vocabulary, BinWeight::square_root, {8, 6}, {});
    EXPECT_NO_THROW(frequency_classes(vocabulary, BinWeight::square_root, sizes.shortlist, sizes.clusters))
        << words;
  }
}

}  // namespace
}  // namespace hsm
