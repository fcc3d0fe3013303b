#include "train/weight_average.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <vector>

#include "base/random.h"
#include "train/training_state.h"

namespace hsm {
namespace {

TEST(WeightAverage, IsTorchsMean) {
  // torch.optim.ASGD with lambd 0 and t0 0, in double: mu is 1 in the first step, then 1 / max(1, steps
  // before).
  std::vector<float> dense(40'000);
  std::vector<float> rows(12);
  const std::vector<Parameter> parameters{{"a", {200, 200}, dense, {}, nullptr, 0},
                                          {"b", {4, 3}, rows, {}, nullptr, 0}};
  ThreadPool pool(3);
  WeightAverage average(parameters, pool);
  EXPECT_TRUE(average.empty());
  average.start();
  std::vector<double> ax(dense.size());
  double mu = 1;
  const CounterRandom random(3, Purpose::sampling);
  for (uint64_t step = 1; step <= 7; ++step) {
    for (size_t i = 0; i < dense.size(); ++i) dense[i] = static_cast<float>(random.uniform(step, i) - 0.5);
    rows.assign(rows.size(), static_cast<float>(step));
    average.add();
    for (size_t i = 0; i < ax.size(); ++i) ax[i] = mu == 1 ? dense[i] : ax[i] + (dense[i] - ax[i]) * mu;
    mu = 1 / std::fmax(1, static_cast<double>(step));
    const WeightView view = average.view();
    ASSERT_EQ(view.tensors.size(), 2U);
    for (size_t i = 0; i < ax.size(); ++i) ASSERT_NEAR(view.tensors[0][i], ax[i], 1e-6) << "step " << step;
  }
  // Steps 2 to 7.
  EXPECT_NEAR(average.view().tensors[1][11], 4.5, 1e-6);
}

TEST(ValidationHistory, StagnatesWhenWorseThanTheBestOfAllButTheLast) {
  // The condition of AWD-LSTM's training, len(best) > n and loss > min(best[:-n]), on a list kept whole.
  const CounterRandom random(5, Purpose::sampling);
  for (const int64_t patience : {1, 2, 5}) {
    ValidationHistory history;
    std::vector<double> all;
    int stagnated = 0;
    for (uint64_t i = 0; i < 60; ++i) {
      const double perplexity =
          100 + 20 * random.uniform(static_cast<uint64_t>(patience), i) - static_cast<double>(i) / 4;
      bool expected = false;
      for (size_t j = 0; j + static_cast<size_t>(patience) < all.size(); ++j) expected |= perplexity > all[j];
      EXPECT_EQ(history.stagnates(perplexity, patience), expected) << i;
      stagnated += expected ? 1 : 0;
      all.push_back(perplexity);
    }
    EXPECT_GT(stagnated, 0);
    EXPECT_LT(stagnated, 60);
  }
}

}  // namespace
}  // namespace hsm
