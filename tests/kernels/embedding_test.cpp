#include "kernels/embedding.h"

#include <gtest/gtest.h>

#include <map>

#include "base/random.h"

namespace hsm::kernels {
namespace {

std::vector<float> numbers(size_t count, uint64_t stream) {
  std::vector<float> out(count);
  for (size_t i = 0; i < count; ++i)
    out[i] = static_cast<float>(CounterRandom(5, Purpose::initialization).uniform(stream, i) - 0.5);
  return out;
}

TEST(Embedding, GathersTheNamedRows) {
  ThreadPool pool(2);
  const auto matrix = numbers(5 * 3, 1);
  const std::vector<int64_t> rows{4, 0, 4, 2};
  std::vector<float> out(12);
  gather_rows(matrix.data(), 3, rows, {}, out.data(), pool);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t u = 0; u < 3; ++u) EXPECT_EQ(out[i * 3 + u], matrix[static_cast<size_t>(rows[i]) * 3 + u]);
  }
  const std::vector<float> scales{2, 0, 1, -1};
  gather_rows(matrix.data(), 3, rows, scales, out.data(), pool);
  for (size_t i = 0; i < 4; ++i) {
    for (size_t u = 0; u < 3; ++u) {
      EXPECT_EQ(out[i * 3 + u], scales[i] * matrix[static_cast<size_t>(rows[i]) * 3 + u]);
    }
  }
}

TEST(Embedding, ScattersScaledSumsOfEachRow) {
  for (const size_t count : {0UL, 1UL, 5UL, 500UL}) {
    constexpr int64_t kWidth = 7;
    std::vector<int64_t> rows(count);
    for (size_t i = 0; i < count; ++i) {
      rows[i] = static_cast<int64_t>(CounterRandom(1, Purpose::shuffle).below(40, 0, i));
    }
    const auto gradients = numbers(count * kWidth, 2);
    auto scales = numbers(count, 3);
    for (size_t i = 0; i < count; i += 3) scales[i] = 0;
    std::map<int64_t, std::vector<float>> expected;
    for (size_t i = 0; i < count; ++i) {
      auto& sum = expected.try_emplace(rows[i], kWidth, 0.0F).first->second;
      for (size_t u = 0; u < kWidth; ++u) sum[u] += gradients[i * kWidth + u] * scales[i];
    }
    RowGradients<float> sums;
    RowGroups groups;
    groups.assign(rows);
    for (const int threads : {1, 3}) {
      ThreadPool pool(threads);
      scatter_rows(groups, scales, gradients.data(), kWidth, sums, pool);
      ASSERT_EQ(sums.rows.size(), expected.size());
      size_t at = 0;
      for (const auto& [row, values] : expected) {
        EXPECT_EQ(sums.rows[at], row);
        for (size_t u = 0; u < kWidth; ++u) EXPECT_FLOAT_EQ(sums.values[at * kWidth + u], values[u]);
        ++at;
      }
    }
  }
}

TEST(Embedding, MergesTheTwoGradientsOfATiedMatrix) {
  ThreadPool pool(2);
  const RowGradients<float> narrow{2, {1, 4, 9}, {1, 2, 3, 4, 5, 6}};
  const RowGradients<float> wide{3, {0, 4, 5}, {10, 20, 30, 40, 50, 60, 70, 80, 90}};
  RowGradients<float> sum;
  merge_rows(narrow, wide, sum, pool);
  EXPECT_EQ(sum.width, 3);
  EXPECT_EQ(sum.rows, (std::vector<int64_t>{0, 1, 4, 5, 9}));
  EXPECT_EQ(sum.values, (std::vector<float>{10, 20, 30, 1, 2, 0, 43, 54, 60, 70, 80, 90, 5, 6, 0}));
  merge_rows({2, {}, {}}, {3, {}, {}}, sum, pool);
  EXPECT_TRUE(sum.rows.empty());
}

}  // namespace
}  // namespace hsm::kernels
