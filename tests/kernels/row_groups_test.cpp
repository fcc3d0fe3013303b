#include "kernels/row_groups.h"

#include <gtest/gtest.h>

#include "kernels/random_values.h"

namespace hsm::kernels {
namespace {

TEST(RowGroups, TokensOfARowAreTogetherInTheirOrder) {
  RowGroups groups;
  groups.assign(std::vector<int64_t>{7, 2, 7, 9, 2, 7});
  EXPECT_EQ(groups.rows, (std::vector<int64_t>{2, 7, 9}));
  EXPECT_EQ(groups.place, (std::vector<int64_t>{1, 0, 1, 2, 0, 1}));
  EXPECT_EQ(groups.order, (std::vector<int64_t>{1, 4, 0, 2, 5, 3}));
  EXPECT_EQ(groups.first, (std::vector<int64_t>{0, 2, 5, 6}));
  groups.assign({});
  EXPECT_EQ(groups.size(), 0);
  EXPECT_EQ(groups.first, std::vector<int64_t>{0});
}

TEST(RowGroups, SumsAreThoseOfALoopOverTheTokens) {
  constexpr int64_t kWidth = 37;
  constexpr size_t kTokens = 211;
  std::vector<int64_t> row_of_token(kTokens);
  for (size_t i = 0; i < kTokens; ++i) row_of_token[i] = static_cast<int64_t>(i * i % 53);
  const auto values = test::random_values<double>(kTokens * kWidth, 1);
  const auto factors = test::random_values<double>(kTokens, 2);
  RowGroups groups;
  groups.assign(row_of_token);
  ThreadPool pool(3);
  for (const bool scaled : {false, true}) {
    std::vector<double> sums(groups.rows.size() * kWidth, -1);
    sum_groups<double>(groups, scaled ? std::span(factors) : std::span<const double>{}, values.data(), kWidth,
                       sums.data(), pool);
    for (size_t r = 0; r < groups.rows.size(); ++r) {
      for (int64_t u = 0; u < kWidth; ++u) {
        double expected = 0;
        for (size_t i = 0; i < kTokens; ++i) {
          if (row_of_token[i] == groups.rows[r])
            expected += values[i * kWidth + static_cast<size_t>(u)] * (scaled ? factors[i] : 1);
        }
        ASSERT_DOUBLE_EQ(sums[r * kWidth + static_cast<size_t>(u)], expected);
      }
    }
  }
}

}  // namespace
}  // namespace hsm::kernels
