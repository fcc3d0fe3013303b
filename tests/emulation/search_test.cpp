#include <gtest/gtest.h>

#include "emulation/fiber_context.h"
#include "emulation/search_harness.h"

namespace hsm::emulation {
namespace {

using device::Bf16;
using device::Fma;

/// Runs the search on fibers; returns the rounds it took.
template <class P>
int run_search(SearchRun<P>& run, int most_blocks, const Options& options) {
  return run.run([&]<class Body>(const auto& args) { emulate<Body>(args, most_blocks, options); });
}

std::vector<SearchCase> cases() {
  const std::vector<int64_t> ragged{1, 7, 31, 1, 2, 75, 3, 40};
  return {
      {{"several_queries", 5, ragged, 24, 9}, {4, 1, 4}},
      {{"one_row", 3, ragged, 9, 1}, {1}, 8},
      {{"more_wanted_than_there_is", 2, {3, 2, 1}, 8, 2}, {2}, 20, 3},
      {{"no_clusters", 50, {}, 8, 3}, {2, 1}},
      {{"clusters_of_one_word", 1, {1, 1, 1, 1, 1}, 8, 3}, {3}, 6},
      {{"one_pair_a_round", 4, ragged, 16, 6}, {3, 3}, 5, 1},
      {{"many_pairs_of_one_cluster", 1, {60}, 16, 40}, {40}, 30, 40},
      {{"forbidden_words", 5, ragged, 24, 6}, {3, 3}, 7, 4, 0, {3, 10, 17, 31, 45}},
      {{"flat", 5, ragged, 24, 6, 0, -1, 0.01}, {6}, 16, 8},
      {{"peaked", 5, ragged, 24, 6, 0, -1, 4}, {6}, 16, 8},
  };
}

template <class P>
void check(const SearchCase& c, double tolerance, uint64_t seed) {
  SearchRun<P> run(c);
  run_search(run, 2, {.seed = seed, .layout_seed = seed});
  for (size_t q = 0; q < c.rows_of_query.size(); ++q) {
    const auto want = run.dense(static_cast<int>(q));
    const auto got = run.best(static_cast<int>(q));
    for (size_t i = 0; i < got.size(); ++i) {
      if (i >= want.size()) {
        EXPECT_EQ(got[i].score, -std::numeric_limits<double>::infinity()) << c.head.name;
        continue;
      }
      EXPECT_NEAR(got[i].score, want[i].score, tolerance)
          << c.head.name << ", query " << q << ", place " << i;
      if (tolerance > 1e-6) continue;  // ranks may differ where scores are closer than rounding
      EXPECT_EQ(got[i].first, want[i].first) << c.head.name << ", query " << q << ", place " << i;
      EXPECT_EQ(got[i].second, want[i].second) << c.head.name << ", query " << q << ", place " << i;
    }
  }
}

TEST(DeviceSearch, FindsWhatADenseRankingFinds) {
  for (const SearchCase& c : cases()) {
    for (uint64_t seed = 1; seed <= 3; ++seed) check<Fma<double>>(c, 1e-9, seed);
  }
}
TEST(DeviceSearch, FindsItInFp32AndBf16) {
  for (const SearchCase& c : cases()) {
    check<Fma<float>>(c, 1e-4, 4);
    check<Bf16>(c, 1e-4, 5);  // of the model rounded to bf16: sums are fp32
  }
}

TEST(DeviceSearch, BreaksTiesByWordThenParent) {
  SearchCase c{{"ties", 1, {40}, 8, 3, 0, -1, 0}, {3}, 9, 2};
  c.equal_scores = true;
  SearchRun<Fma<float>> run(c);
  run_search(run, 2, {});
  const auto best = run.best(0);
  const std::array<int32_t, 9> words{0, 0, 0, 1, 1, 1, 2, 2, 2};  // 3 is the end symbol
  for (size_t i = 0; i < 9; ++i) {
    EXPECT_EQ(best[i].first, words[i]);
    EXPECT_EQ(best[i].second, static_cast<int32_t>(i % 3));
  }
}

// Page after page, as far as there are words.
TEST(DeviceSearch, GoesOnAfterTheWordsFoundBefore) {
  for (const SearchCase& c :
       {SearchCase{{"pages", 5, {1, 7, 31, 1, 2}, 24, 5}, {3, 1, 1}, 6, 3},
        SearchCase{{"tied_pages", 1, {9, 9}, 8, 2, 0, -1, 0}, {2}, 5, 2, 0, {4}, true}}) {
    SearchRun<Fma<double>> run(c);
    std::vector<std::vector<Ranked>> found(c.rows_of_query.size());
    for (int page = 0; page < 30; ++page) {
      run_search(run, 2, {.seed = static_cast<uint64_t>(page)});
      for (size_t q = 0; q < found.size(); ++q) {
        for (const Ranked& word : run.best(static_cast<int>(q))) {
          if (word.score > -std::numeric_limits<double>::infinity()) found[q].push_back(word);
        }
      }
      run.turn_page();
    }
    for (size_t q = 0; q < found.size(); ++q) {
      const auto want = run.dense(static_cast<int>(q), 1000);
      ASSERT_EQ(found[q].size(), want.size()) << c.head.name;
      for (size_t i = 0; i < want.size(); ++i) {
        EXPECT_NEAR(found[q][i].score, want[i].score, 1e-9);
        EXPECT_EQ(found[q][i].first, want[i].first);
        EXPECT_EQ(found[q][i].second, want[i].second);
      }
    }
  }
}

TEST(DeviceSearch, ShowsScoresThatAreNotNumbers) {
  SearchCase c{{"nan_root", 5, {7, 31}, 24, 2}, {1, 1}};
  SearchRun<Fma<float>> root(c);
  root.spoil_row(1);
  run_search(root, 1, {});
  EXPECT_FALSE(std::isnan(root.end_log_prob()[0]));
  EXPECT_TRUE(std::isnan(root.end_log_prob()[1]));
  EXPECT_EQ(root.best(1)[0].score, std::numeric_limits<double>::infinity());
  SearchCase one{{"nan_leaf", 1, {8}, 24, 1}, {1}};
  SearchRun<Fma<float>> leaf(one);
  leaf.spoil_word(3);
  run_search(leaf, 1, {});
  EXPECT_EQ(leaf.best(0)[0].score, std::numeric_limits<double>::infinity());
}

TEST(DeviceSearch, CountsWhatItExpands) {
  SearchCase c{{"count", 0, {4, 1, 5, 6}, 8, 4}, {1, 3}, 50, 2};
  SearchRun<Fma<float>> run(c);
  run_search(run, 1, {});
  EXPECT_EQ(run.expanded(0), 3);  // all that have several words
  EXPECT_EQ(run.expanded(1), 9);
  run.close(1);
  run_search(run, 1, {});
  EXPECT_EQ(run.expanded(0), 6);
  EXPECT_EQ(run.expanded(1), 9);
  EXPECT_EQ(run.best(1)[0].score, -std::numeric_limits<double>::infinity());
}

TEST(DeviceSearch, TellsTheEndSymbolsLogProbability) {
  SearchCase c{{"end", 5, {7, 31}, 24, 4}, {4}, 4, 4, 3};
  SearchRun<Fma<double>> run(c);
  run_search(run, 1, {});
  for (int64_t row = 0; row < 4; ++row) {
    EXPECT_NEAR(static_cast<double>(run.end_log_prob()[static_cast<size_t>(row)]), run.log_prob(row, 3),
                1e-6);
  }
}

// What a query finds does not depend on the company it is in.
TEST(DeviceSearch, GivesAQueryTheSameBitsAlone) {
  SearchCase together{{"company", 5, {7, 31, 21}, 24, 9}, {2, 5, 2}, 6};
  SearchCase alone = together;
  alone.head.tokens = 2;
  alone.rows_of_query = {2};
  SearchRun<Fma<float>> run_together(together);
  SearchRun<Fma<float>> run_alone(alone);
  run_search(run_together, 3, {.seed = 1});
  run_search(run_alone, 1, {.seed = 2});
  for (size_t i = 0; i < 6; ++i) {
    EXPECT_EQ(run_together.best(0)[i].score, run_alone.best(0)[i].score);
    EXPECT_EQ(run_together.best(0)[i].first, run_alone.best(0)[i].first);
  }
}

// Peaked distributions end after few rounds: the bound stops the search.
TEST(DeviceSearch, StopsWhenNoClusterCanHoldABetterWord) {
  SearchCase c{{"bound", 20, std::vector<int64_t>(40, 6), 16, 2, 0, -1, 3}, {2}, 4, 2};
  SearchRun<Fma<float>> run(c);
  const int rounds = run_search(run, 1, {});
  EXPECT_LT(rounds, 20) << "40 rounds would expand every pair";
}

/// Sorts random pairs; says what is wrong with the order or the items.
std::string sort_pairs(uint64_t draw, const Options& options) {
  constexpr int32_t kSlots = 60;
  const CounterRandom random(draw, Purpose::sampling);
  std::vector<Ranked> pair;
  std::vector<int32_t> pair_count;
  std::vector<int32_t> want;
  for (uint64_t query = 0; query < 2; ++query) {
    pair_count.push_back(kSlots - static_cast<int32_t>(random.below(20, 0, query)));
    for (int32_t i = 0; i < kSlots; ++i) {
      const auto slot = static_cast<int32_t>(query) * kSlots + i;
      pair.push_back({0, 0, static_cast<int32_t>(random.below(4, 1, static_cast<uint64_t>(slot)))});
      if (i < pair_count.back()) want.push_back(slot);
    }
  }
  std::ranges::stable_sort(want, {}, [&](int32_t slot) { return pair[static_cast<size_t>(slot)].second; });
  std::vector<int32_t> starts;
  for (size_t i = 0; i < want.size(); ++i) {
    const bool full = !starts.empty() && i == static_cast<size_t>(starts.back()) + 16;
    const auto cluster = [&](size_t at) { return pair[static_cast<size_t>(want[at])].second; };
    if (i == 0 || full || cluster(i) != cluster(i - 1)) starts.push_back(static_cast<int32_t>(i));
  }
  starts.push_back(static_cast<int32_t>(want.size()));

  std::vector<int32_t> order(want.size());
  std::vector<int32_t> item_start(2 * kSlots + 1, -1);
  std::vector<int32_t> item_count(1, -1);
  device::SearchArgs<Fma<float>> args;
  args.queries = 2;
  args.pairs_a_round = kSlots;
  args.pair = {pair.data(), 2 * kSlots};
  args.pair_count = {pair_count.data(), 2};
  args.order = {order.data(), static_cast<int64_t>(order.size())};
  args.item_start = {item_start.data(), static_cast<int64_t>(item_start.size())};
  args.item_count = {item_count.data(), 1};
  try {
    emulate<SearchKernels<Fma<float>>::Sort>(args, 1, options);
  } catch (const Violation& violation) {
    return violation.what();
  }
  if (order != want) return "order";
  if (item_count[0] + 1 != static_cast<int32_t>(starts.size())) return "number of items";
  return std::equal(starts.begin(), starts.end(), item_start.begin()) ? "" : "items";
}

TEST(DeviceSearch, SortsPairsByClusterAndCutsThemIntoItems) {
  for (uint64_t draw = 1; draw <= 20; ++draw) {
    EXPECT_EQ(sort_pairs(draw, {.seed = draw}), "") << draw;
  }
}

TEST(DeviceSearch, NeedsEachBarrierAndBoundsTest) {
  std::set<int> sites;
  std::vector<SearchCase> small{
      {{"company", 5, {7, 31, 20, 1}, 22, 9}, {2, 5, 2}, 6, 5},
      {{"tiles", 20, {40}, 16, 30}, {30}, 20, 30},
      {{"pairs", 1, std::vector<int64_t>(30, 6), 8, 12, 0, -1, 0.05}, {6, 6}, 6, 40}};
  const auto outcome = [&](const SearchCase& c, const Options& options) -> std::string {
    try {
      SearchRun<Fma<double>> run(c);
      run_search(run, 2, options);
      for (size_t q = 0; q < c.rows_of_query.size(); ++q) {
        const auto want = run.dense(static_cast<int>(q));
        const auto got = run.best(static_cast<int>(q));
        for (size_t i = 0; i < want.size(); ++i) {
          if (std::abs(got[i].score - want[i].score) > 1e-9 || got[i].first != want[i].first)
            return "differs";
          if (std::isnan(got[i].score)) return "not a number";
        }
      }
      return "";
    } catch (const Violation& violation) {
      return violation.what();
    }
  };
  for (const SearchCase& c : small) ASSERT_EQ(outcome(c, {.visited = &sites}), "");
  for (const int site : sites) {
    std::string caught;
    for (uint64_t seed = 1; seed <= 40 && caught.empty(); ++seed) {
      const Options options{.seed = seed, .layout_seed = seed, .dead_sites = {site}, .most_steps = 3'000'000};
      caught = sort_pairs(seed, options);
      for (const SearchCase& c : small) {
        if (caught.empty()) caught = outcome(c, options);
      }
    }
    EXPECT_NE(caught, "") << "nothing changes without the barrier or bounds test of line " << (site & 0xFFF);
  }
}

}  // namespace
}  // namespace hsm::emulation
