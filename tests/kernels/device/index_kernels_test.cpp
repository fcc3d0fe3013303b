// Rows and masks by the device's bodies, run on the host, against the CPU's kernels.
#include "kernels/device/index_kernels.h"

#include <gtest/gtest.h>

#include <vector>

#include "kernels/device/host_kernels.h"
#include "kernels/dropout.h"
#include "kernels/embedding.h"
#include "kernels/random_values.h"

namespace hsm::kernels::device {
namespace {

using hsm::test::HostKernels;
using hsm::test::random_values;

TEST(IndexKernels, GatheredRowsAndTheirGradientAreTheCpus) {
  constexpr int64_t kWidth = 7;
  const std::vector<int64_t> rows{5, 0, 5, 9, 3, 5, 0};
  const std::vector<int32_t> rows32(rows.begin(), rows.end());
  const std::vector<float> table = random_values<float>(10 * kWidth, 1, 2);
  const std::vector<float> gradient = random_values<float>(static_cast<int64_t>(rows.size()) * kWidth, 2, 2);
  const std::vector<float> scales{2, 0, 0.5F, 1, 1, 3, 1};
  ThreadPool pool(1);
  RowGroups groups;
  groups.assign(rows);
  const std::vector<int32_t> order(groups.order.begin(), groups.order.end());
  const std::vector<int32_t> starts(groups.first.begin(), groups.first.end());
  for (const bool scaled : {false, true}) {
    const std::span<const float> factors = scaled ? std::span<const float>(scales) : std::span<const float>();
    std::vector<float> expected(rows.size() * kWidth);
    kernels::gather_rows(table.data(), kWidth, rows, factors, expected.data(), pool);
    HostKernels kernels(ElementType::f32);
    std::vector<float> out(expected.size());
    kernels.gather_rows(table.data(), kWidth, rows32.data(), scaled ? scales.data() : nullptr,
                        static_cast<int64_t>(rows.size()), out.data());
    EXPECT_EQ(out, expected);

    RowGradients<float> expected_rows;
    kernels::scatter_rows(groups, factors, gradient.data(), kWidth, expected_rows, pool);
    std::vector<float> sums(expected_rows.values.size());
    kernels.sum_rows(gradient.data(), kWidth, order.data(), starts.data(), scaled ? scales.data() : nullptr,
                     groups.size(), sums.data());
    EXPECT_EQ(sums, expected_rows.values);
  }
}

TEST(IndexKernels, RowsAreAddedAtTheirPlaces) {
  HostKernels kernels(ElementType::f32);
  std::vector<float> to{1, 2, 3, 4, 5, 6};
  const std::vector<float> from{10, 20, 30, 40};
  const std::vector<int32_t> places{2, 0};
  kernels.add_rows(from.data(), places.data(), 2, 2, to.data());
  EXPECT_EQ(to, (std::vector<float>{31, 42, 3, 4, 15, 26}));
}

TEST(IndexKernels, MasksAreTheCpus) {
  ThreadPool pool(1);
  for (const bool locked : {false, true}) {
    for (const int64_t units : {1, 8, 13}) {
      const DropoutShape shape{4, 3, units, 2};
      std::vector<float> expected = random_values<float>(4 * 3 * units, 3, 2);
      std::vector<float> values = expected;
      apply_dropout(shape, 0.4, locked, {0x123456789ABCDEFULL, Purpose::dropout_hidden, 77, 2},
                    expected.data(), pool);
      HostKernels kernels(ElementType::f32);
      kernels.dropout({0x123456789ABCDEFULL, static_cast<uint32_t>(Purpose::dropout_hidden), 77, 2, 4, 3, 2,
                       units, 0.4, locked},
                      values.data());
      EXPECT_EQ(values, expected) << units << ", locked " << locked;
    }
  }
}

TEST(IndexKernels, SixteenBitElementsRoundToNearest) {
  const std::vector<float> table{1.0F, 1.0F + 1.0F / 256, -3.14159265F};
  const std::vector<int32_t> rows{0, 1, 2};
  const std::vector<float> scales{1.0F / 3, 1, 1};
  for (const ElementType type : {ElementType::bf16, ElementType::f16}) {
    const bool bf16 = type == ElementType::bf16;
    const auto store = [&](float x) { return bf16 ? to_bfloat16(x).bits : to_half(x).bits; };
    const auto load = [&](uint16_t x) { return bf16 ? to_float(BFloat16{x}) : to_float(Half{x}); };
    const std::vector<uint16_t> stored{store(table[0]), store(table[1]), store(table[2])};
    HostKernels kernels(type);
    std::vector<uint16_t> out(3);
    kernels.gather_rows(stored.data(), 1, rows.data(), scales.data(), 3, out.data());
    EXPECT_EQ(out[0], store(1.0F / 3));
    EXPECT_NEAR(load(out[2]), table[2], bf16 ? 0.01 : 0.001);
  }
}

}  // namespace
}  // namespace hsm::kernels::device
