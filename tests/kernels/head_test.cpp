#include "kernels/head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <numeric>
#include <string>

#include "kernels/random_values.h"
#include "reference/head_oracle.h"

namespace hsm::kernels {
namespace {

using reference::head_oracle;
using reference::HeadAnswer;
using reference::HeadProblem;
using test::random_values;

/// How targets are drawn.
enum class Draw { any, none, one_cluster, shortlist_only, some_ignored };

struct Setting {
  std::string name;
  int64_t shortlist;
  std::vector<int64_t> cluster_sizes;
  int64_t dim;
  int64_t tokens;
  Draw draw = Draw::any;
};

std::ostream& operator<<(std::ostream& out, const Setting& setting) {
  return out << setting.name;
}

std::vector<Setting> settings() {
  const std::vector<int64_t> ragged{1, 7, 31, 1, 2, 100, 3};
  std::vector<Setting> all{
      {"one_token", 3, ragged, 7, 1},
      {"one_value_wide", 5, ragged, 1, 40},
      {"no_shortlist", 0, ragged, 33, 61},
      {"everything_in_the_shortlist", 53, {}, 33, 29},
      {"one_cluster_without_shortlist", 0, {41}, 7, 30},
      {"one_cluster_and_shortlist", 2, {41}, 7, 30},
      {"one_cluster_of_one_word", 4, {1}, 7, 30},
      {"all_clusters_of_one_word", 0, {1, 1, 1, 1, 1}, 7, 30},
      {"two_words_in_a_cluster", 0, {2}, 7, 11},
      {"two_words_in_the_shortlist", 2, {}, 7, 11},
      {"one_word_each", 1, {1}, 7, 11},
      {"single_word", 1, {}, 3, 4},
      {"wide", 11, ragged, 200, 97},
      {"all_in_one_cluster", 3, {5, 60, 9}, 33, 150, Draw::one_cluster},
      {"only_shortlist_targets", 9, ragged, 33, 20, Draw::shortlist_only},
      {"ignored_targets", 9, ragged, 33, 90, Draw::some_ignored},
      {"nothing_but_ignored", 9, ragged, 33, 6, Draw::none},
      {"no_tokens", 9, ragged, 33, 0},
      {"rarely_hit_clusters", 150, {100, 1, 60, 200, 31}, 64, 90},
      // Large enough for a cluster to be shared by the threads, and for several blocks of logits.
      {"large_cluster", 2, {900, 3, 500}, 200, 400, Draw::one_cluster},
      {"several_blocks", 3000, {70, 2}, 5, 700},
  };
  return all;
}

int64_t draw_target(const Setting& setting, int64_t words, uint64_t token) {
  const CounterRandom random(99, Purpose::sampling);
  const auto below = [&](int64_t bound, uint64_t minor) {
    return static_cast<int64_t>(random.below(static_cast<uint64_t>(bound), token, minor));
  };
  switch (setting.draw) {
    case Draw::none:
      return -1;
    case Draw::one_cluster:
      return setting.shortlist + setting.cluster_sizes[0] * (setting.name == "all_in_one_cluster") +
             below(setting.cluster_sizes[setting.name == "all_in_one_cluster" ? 1 : 0], 0);
    case Draw::shortlist_only:
      return below(setting.shortlist, 0);
    case Draw::some_ignored:
      return below(3, 1) == 0 ? -1 - below(5, 2) : below(words, 0);
    case Draw::any:
      break;
  }
  return below(words, 0);
}

HeadProblem make_problem(const Setting& setting) {
  HeadProblem p;
  p.shortlist = setting.shortlist;
  p.dim = setting.dim;
  p.cluster_offsets.push_back(setting.shortlist);
  for (const int64_t size : setting.cluster_sizes)
    p.cluster_offsets.push_back(p.cluster_offsets.back() + size);
  p.words = p.cluster_offsets.back();
  // Rounded to float, so that both scalars see the same problem.
  const auto values = [](int64_t count, uint64_t seed) {
    const std::vector<float> rounded = random_values<float>(count, seed, 0.7);
    return std::vector<double>(rounded.begin(), rounded.end());
  };
  p.word = values(p.words * p.dim, 1);
  p.word_bias = values(p.words, 2);
  p.cluster = values(p.clusters() * p.dim, 3);
  p.cluster_bias = values(p.clusters(), 4);
  p.hidden = values(setting.tokens * p.dim, 5);
  for (int64_t i = 0; i < setting.tokens; ++i) p.targets.push_back(draw_target(setting, p.words, i));
  return p;
}

/// What head_loss gave, with the row gradients as they are.
template <class T>
struct Result {
  double loss = 0;
  std::vector<T> hidden, cluster, cluster_bias;
  RowGradients<T> word;
};

/// The problem in the kernel's scalar and layout.
template <class T>
class Kernel {
 public:
  explicit Kernel(const HeadProblem& p)
      : offsets_(p.cluster_offsets),
        word_(p.word.begin(), p.word.end()),
        word_bias_(p.word_bias.begin(), p.word_bias.end()),
        cluster_(p.cluster.begin(), p.cluster.end()),
        cluster_bias_(p.cluster_bias.begin(), p.cluster_bias.end()),
        hidden_(p.hidden.begin(), p.hidden.end()),
        targets_(p.targets) {
    cluster_of_row_.assign(static_cast<size_t>(p.words), -1);
    for (int64_t c = 0; c < p.clusters(); ++c) {
      for (int64_t v = offsets_[c]; v < offsets_[c + 1]; ++v) cluster_of_row_[v] = static_cast<int32_t>(c);
    }
    shape_ = {.words = p.words,
              .shortlist = p.shortlist,
              .dim = p.dim,
              .cluster_offsets = offsets_,
              .cluster_of_row = cluster_of_row_};
  }

  [[nodiscard]] const HeadShape& shape() const { return shape_; }

  Result<T> run(T scale, ThreadPool& pool, HeadWorkspace<T>& workspace,
                LeafFactors<T>* leaves = nullptr) const {
    Result<T> result;
    // Poison: everything must be overwritten.
    result.hidden.assign(hidden_.size(), std::nan(""));
    result.cluster.assign(cluster_.size(), std::nan(""));
    result.cluster_bias.assign(cluster_bias_.size(), std::nan(""));
    result.word.values.assign(7, std::nan(""));
    const HeadGradients<T> gradients{result.hidden.data(), &result.word, result.cluster.data(),
                                     result.cluster_bias.data(), leaves};
    result.loss =
        head_loss<T>(shape_, weights(), hidden_.data(), targets_, scale, &gradients, workspace, pool);
    return result;
  }
  double loss_only(ThreadPool& pool, HeadWorkspace<T>& workspace) const {
    return head_loss<T>(shape_, weights(), hidden_.data(), targets_, T{1}, nullptr, workspace, pool);
  }

 private:
  [[nodiscard]] HeadWeights<T> weights() const {
    return {word_.data(), word_bias_.data(), cluster_.data(), cluster_bias_.data()};
  }

  std::vector<int64_t> offsets_;
  std::vector<T> word_, word_bias_, cluster_, cluster_bias_, hidden_;
  std::vector<int64_t> targets_;
  std::vector<int32_t> cluster_of_row_;
  HeadShape shape_;
};

template <class T>
void expect_near(const std::vector<T>& got, const std::vector<double>& expected, double tolerance,
                 const char* what) {
  ASSERT_EQ(got.size(), expected.size()) << what;
  for (size_t i = 0; i < got.size(); ++i) {
    ASSERT_NEAR(got[i], expected[i], tolerance * (1 + std::abs(expected[i]))) << what << " " << i;
  }
}

template <class T>
void expect_answer(const HeadProblem& p, const Result<T>& got, const HeadAnswer& expected, double tolerance) {
  ASSERT_NEAR(got.loss, expected.loss, tolerance * (1 + std::abs(expected.loss)));
  expect_near(got.hidden, expected.hidden, tolerance, "hidden");
  expect_near(got.cluster, expected.cluster, tolerance, "cluster");
  expect_near(got.cluster_bias, expected.cluster_bias, tolerance, "cluster bias");
  ASSERT_EQ(got.word.width, p.dim + 1);
  ASSERT_EQ(got.word.values.size(), got.word.rows.size() * (p.dim + 1));
  // Rows that are given hold the gradient; for the others it is zero.
  std::vector<T> word(p.word.size());
  std::vector<T> bias(p.word_bias.size());
  for (size_t r = 0; r < got.word.rows.size(); ++r) {
    const int64_t row = got.word.rows[r];
    ASSERT_TRUE(r == 0 || got.word.rows[r - 1] < row);
    const T* values = &got.word.values[r * (p.dim + 1)];
    std::copy_n(values, p.dim, &word[row * p.dim]);
    bias[row] = values[p.dim];
  }
  expect_near(word, expected.word, tolerance, "word");
  expect_near(bias, expected.word_bias, tolerance, "word bias");
}

class Head : public testing::TestWithParam<Setting> {};
INSTANTIATE_TEST_SUITE_P(Shapes, Head, testing::ValuesIn(settings()),
                         [](const auto& setting) { return setting.param.name; });

TEST_P(Head, AgreesWithTheOracleInDouble) {
  const HeadProblem p = make_problem(GetParam());
  ThreadPool pool(2);
  HeadWorkspace<double> workspace;
  const Kernel<double> kernel(p);
  expect_answer(p, kernel.run(0.625, pool, workspace), head_oracle(p, 0.625), 1e-10);
  EXPECT_NEAR(kernel.loss_only(pool, workspace), head_oracle(p).loss, 1e-10 * (1 + head_oracle(p).loss));
}

TEST_P(Head, AgreesWithTheOracleInFloat) {
  const HeadProblem p = make_problem(GetParam());
  ThreadPool pool(2);
  HeadWorkspace<float> workspace;
  expect_answer(p, Kernel<float>(p).run(0.625F, pool, workspace), head_oracle(p, 0.625), 1e-5);
}

template <class T>
void expect_same(const Result<T>& a, const Result<T>& b) {
  EXPECT_EQ(a.loss, b.loss);
  EXPECT_EQ(a.hidden, b.hidden);
  EXPECT_EQ(a.cluster, b.cluster);
  EXPECT_EQ(a.cluster_bias, b.cluster_bias);
  EXPECT_EQ(a.word.rows, b.word.rows);
  EXPECT_EQ(a.word.values, b.word.values);
}

TEST_P(Head, SameBitsForAnyNumberOfThreadsAndAUsedWorkspace) {
  const HeadProblem p = make_problem(GetParam());
  const Kernel<float> kernel(p);
  ThreadPool one(1);
  HeadWorkspace<float> workspace;
  const Result<float> expected = kernel.run(1.5F, one, workspace);
  for (const int threads : {1, 2, 3}) {
    ThreadPool pool(threads);
    expect_same(expected, kernel.run(1.5F, pool, workspace));
  }
}

/// Adds the rows that the factors stand for to those of the result, in no order; their norm is compared.
template <class T>
void unfold(const HeadProblem& p, LeafFactors<T>& leaves, Result<T>& result, ThreadPool& pool) {
  const double norm = sum_of_squares(leaves, pool);
  std::vector<T> weights(p.word.size());
  std::vector<T> bias(p.word_bias.size());
  std::vector<int64_t> rows;
  for (const FactoredCluster<T>& c : leaves.clusters) {
    for (int64_t row = 0; row < c.rows; ++row) rows.push_back(c.first_row + row);
  }
  add_gradients(leaves, T{1}, weights.data(), bias.data(), pool);
  RowGradients<T> all;
  all.width = p.dim + 1;
  std::map<int64_t, std::vector<T>> by_row;
  for (size_t r = 0; r < result.word.rows.size(); ++r) {
    const T* from = &result.word.values[r * (p.dim + 1)];
    by_row[result.word.rows[r]].assign(from, from + p.dim + 1);
  }
  double expected = 0;
  for (const int64_t row : rows) {
    auto& values = by_row[row];
    ASSERT_TRUE(values.empty()) << "row " << row << " twice";
    values.assign(&weights[row * p.dim], &weights[row * p.dim] + p.dim);
    values.push_back(bias[row]);
    for (const T value : values) expected += static_cast<double>(value) * value;
  }
  EXPECT_NEAR(norm, expected, 1e-5 * (expected + 1e-6));
  for (const auto& [row, values] : by_row) {
    all.rows.push_back(row);
    all.values.insert(all.values.end(), values.begin(), values.end());
  }
  result.word = all;
}

TEST_P(Head, GradientsLeftAsFactorsAreTheSame) {
  const HeadProblem p = make_problem(GetParam());
  ThreadPool one(1);
  ThreadPool three(3);
  HeadWorkspace<double> workspace;
  LeafFactors<double> leaves;
  auto wide = Kernel<double>(p).run(0.625, three, workspace, &leaves);
  unfold(p, leaves, wide, three);
  expect_answer(p, wide, head_oracle(p, 0.625), 1e-10);

  HeadWorkspace<float> single_workspace;
  LeafFactors<float> single_leaves;
  auto expected = Kernel<float>(p).run(0.625F, one, single_workspace, &single_leaves);
  unfold(p, single_leaves, expected, one);
  expect_answer(p, expected, head_oracle(p, 0.625), 1e-5);
  auto again = Kernel<float>(p).run(0.625F, three, single_workspace, &single_leaves);
  unfold(p, single_leaves, again, three);
  expect_same(expected, again);
}

TEST(HeadGradient, OfRarelyHitClustersIsLeftAsFactors) {
  const std::vector<Setting> all = settings();
  const auto setting =
      std::find_if(all.begin(), all.end(), [](const Setting& s) { return s.name == "rarely_hit_clusters"; });
  const HeadProblem p = make_problem(*setting);
  ThreadPool pool(2);
  HeadWorkspace<float> workspace;
  LeafFactors<float> leaves;
  const auto result = Kernel<float>(p).run(1, pool, workspace, &leaves);
  int64_t rows = static_cast<int64_t>(result.word.rows.size());
  for (const auto& cluster : leaves.clusters) {
    EXPECT_TRUE(LeafFactors<float>::pays(cluster.tokens, cluster.rows, p.dim));
    rows += cluster.rows;
  }
  EXPECT_FALSE(leaves.clusters.empty());
  EXPECT_EQ(rows, p.words - 1);  // all but the cluster of one word
  // A pass without targets leaves nothing of the one before.
  HeadProblem none = p;
  none.targets.assign(p.targets.size(), -1);
  static_cast<void>(Kernel<float>(none).run(1, pool, workspace, &leaves));
  EXPECT_TRUE(leaves.clusters.empty());
}

TEST_P(Head, TouchedRowsAreThoseWithGradients) {
  const HeadProblem p = make_problem(GetParam());
  const Kernel<float> kernel(p);
  ThreadPool pool(1);
  HeadWorkspace<float> workspace;
  EXPECT_EQ(kernel.run(1, pool, workspace).word.rows, touched_rows(kernel.shape(), p.targets));
}

TEST(HeadGradient, LeavesOutClustersThatNoTargetHitsAndClustersOfOneWord) {
  HeadProblem p = make_problem({"", 2, {3, 1, 2, 4}, 5, 3});
  p.targets = {3, 5, 6};  // in the clusters of 3, 1 and 2 words
  ThreadPool pool(1);
  HeadWorkspace<double> workspace;
  EXPECT_EQ(Kernel<double>(p).run(1, pool, workspace).word.rows, (std::vector<int64_t>{0, 1, 2, 3, 4, 6, 7}));
}

/// d loss / d value by central differences.
double slope(const std::function<double()>& loss, double& value) {
  constexpr double kStep = 1e-5;
  const double before = value;
  value = before + kStep;
  const double up = loss();
  value = before - kStep;
  const double down = loss();
  value = before;
  return (up - down) / (2 * kStep);
}

TEST(HeadGradient, OracleAndKernelAgreeWithFiniteDifferences) {
  HeadProblem p = make_problem({"", 3, {1, 5, 2}, 4, 9, Draw::some_ignored});
  const HeadAnswer oracle = head_oracle(p);
  ThreadPool pool(1);
  HeadWorkspace<double> workspace;
  const auto oracle_loss = [&] { return head_oracle(p).loss; };
  const auto kernel_loss = [&] { return Kernel<double>(p).loss_only(pool, workspace); };
  const auto check = [&](std::vector<double>& values, const std::vector<double>& gradient) {
    for (size_t i = 0; i < values.size(); ++i) {
      ASSERT_NEAR(gradient[i], slope(oracle_loss, values[i]), 1e-8) << i;
      ASSERT_NEAR(gradient[i], slope(kernel_loss, values[i]), 1e-8) << i;
    }
  };
  check(p.hidden, oracle.hidden);
  check(p.word, oracle.word);
  check(p.word_bias, oracle.word_bias);
  check(p.cluster, oracle.cluster);
  check(p.cluster_bias, oracle.cluster_bias);
}

// Σ over all words of P(word | hidden), each from its own loss.
TEST(HeadLoss, ProbabilitiesSumToOne) {
  HeadProblem p = make_problem({"", 3, {1, 5, 40, 2}, 17, 1});
  const std::vector<double> one = p.hidden;
  ThreadPool pool(1);
  HeadWorkspace<float> workspace;
  double sum = 0;
  for (int64_t row = 0; row < p.words; ++row) {
    p.targets = {row};
    sum += std::exp(-Kernel<float>(p).loss_only(pool, workspace));
  }
  EXPECT_NEAR(sum, 1, 1e-5);
}

TEST(HeadLoss, IsNotFiniteWhenAWeightIsNot) {
  HeadProblem p = make_problem({"", 3, {5}, 4, 6});
  p.cluster[2] = std::nan("");
  ThreadPool pool(1);
  HeadWorkspace<float> workspace;
  EXPECT_TRUE(std::isnan(Kernel<float>(p).run(1, pool, workspace).loss));
}

TEST(HeadLoss, LargeLogitsDoNotOverflow) {
  HeadProblem p = make_problem({"", 3, {5, 4}, 4, 6});
  for (double& value : p.word) value *= 300;
  for (double& value : p.cluster) value *= 300;
  ThreadPool pool(1);
  HeadWorkspace<float> workspace;
  const double expected = head_oracle(p).loss;
  EXPECT_NEAR(Kernel<float>(p).run(1, pool, workspace).loss, expected, 1e-4 * (1 + expected));
}

TEST(HeadWorkspace, GrowsToNeedAndSaysHowMuch) {
  const HeadProblem small = make_problem({"", 3, {5}, 4, 6});
  const HeadProblem large = make_problem({"", 30, {50}, 40, 600});
  ThreadPool pool(1);
  HeadWorkspace<float> workspace;
  (void)Kernel<float>(small).loss_only(pool, workspace);
  const uint64_t before = workspace.bytes();
  (void)Kernel<float>(large).loss_only(pool, workspace);
  EXPECT_GE(workspace.bytes(), before + 590 * 40 * sizeof(float));
}

}  // namespace
}  // namespace hsm::kernels
