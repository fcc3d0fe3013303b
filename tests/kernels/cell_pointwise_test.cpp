#include "kernels/cell_pointwise.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>

#include "kernels/cell_kernels.h"
#include "kernels/random_values.h"

namespace hsm::kernels {
namespace {

using test::random_values;

// Everything that the functions read or write, for one stream and step.
template <class T>
struct Values {
  explicit Values(int64_t hidden)
      : h(hidden),
        gates(random_values<T>(4 * hidden, 1)),
        parts(random_values<T>(3 * hidden, 2)),
        c_before(random_values<T>(hidden, 3)),
        h_before(random_values<T>(hidden, 4)),
        direct(random_values<T>(hidden, 5)),
        from_after(random_values<T>(hidden, 6)),
        dc(random_values<T>(hidden, 7)),
        c(static_cast<size_t>(hidden)),
        out(static_cast<size_t>(hidden)),
        candidate(static_cast<size_t>(hidden)) {}

  /// What belongs to unit u alone.
  [[nodiscard]] Values unit(int64_t u) const {
    Values one(1);
    const auto take = [&](const std::vector<T>& from, std::vector<T>& to) {
      for (size_t g = 0; g < to.size(); ++g)
        to[g] = from[g * static_cast<size_t>(h) + static_cast<size_t>(u)];
    };
    take(gates, one.gates);
    take(parts, one.parts);
    take(c_before, one.c_before);
    take(h_before, one.h_before);
    take(direct, one.direct);
    take(from_after, one.from_after);
    take(dc, one.dc);
    return one;
  }

  /// All functions of a cell, one after the other; the numbers that they leave.
  [[nodiscard]] std::vector<T> run(const CellKernels<T>& kernels, Cell cell) {
    const OutputGradient<T> dh{direct.data(), from_after.data()};
    if (cell == Cell::lstm) {
      kernels.lstm_forward(h, gates.data(), c_before.data(), c.data(), out.data());
      forward = gates;
      kernels.lstm_backward(h, gates.data(), c_before.data(), c.data(), dh, dc.data());
    } else if (cell == Cell::gru) {
      kernels.gru_forward(h, gates.data(), parts.data(), candidate.data(), h_before.data(), out.data());
      forward = gates;
      kernels.gru_backward(h, gates.data(), candidate.data(), h_before.data(), dh, from_after.data());
    } else {
      kernels.plain_forward(cell, h, gates.data(), out.data());
      kernels.plain_backward(cell, h, out.data(), dh, c.data());
    }
    std::vector<T> all;
    for (const auto* v : {&forward, &gates, &c, &out, &candidate, &dc, &from_after})
      all.insert(all.end(), v->begin(), v->end());
    return all;
  }

  int64_t h;
  std::vector<T> gates, parts, c_before, h_before, direct, from_after, dc, c, out, candidate, forward;
};

constexpr Cell kCells[] = {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu};

// That the formulas are right, recurrent_test checks in double against its own reference.
TEST(CellPointwise, FloatIsNearDoubleOnEveryInstructionSet) {
  for (const InstructionSet set : available_instruction_sets()) {
    for (const Cell cell : kCells) {
      const auto single = Values<float>(67).run(cell_kernels<float>(set), cell);
      const auto wide = Values<double>(67).run(cell_kernels<double>(set), cell);
      ASSERT_EQ(single.size(), wide.size());
      for (size_t i = 0; i < wide.size(); ++i) ASSERT_NEAR(single[i], wide[i], 2e-6) << name(set) << " " << i;
    }
  }
}

TEST(CellPointwise, AUnitDependsNeitherOnItsNeighboursNorOnItsPlace) {
  constexpr int64_t kHidden = 37;
  for (const InstructionSet set : available_instruction_sets()) {
    for (const Cell cell : kCells) {
      Values<float> all(kHidden);
      const Values<float> before = all;
      const auto whole = all.run(cell_kernels<float>(set), cell);
      for (int64_t u = 0; u < kHidden; ++u) {
        const auto alone = before.unit(u).run(cell_kernels<float>(set), cell);
        for (size_t g = 0; g < alone.size(); ++g) {
          ASSERT_EQ(alone[g], whole[g * kHidden + static_cast<size_t>(u)]) << name(set) << " " << u;
        }
      }
    }
  }
}

TEST(CellPointwise, NotANumberStaysVisible) {
  for (const InstructionSet set : available_instruction_sets()) {
    for (const Cell cell : kCells) {
      Values<float> values(5);
      values.gates[2] = std::numeric_limits<float>::quiet_NaN();
      static_cast<void>(values.run(cell_kernels<float>(set), cell));
      EXPECT_TRUE(std::isnan(values.out[2])) << name(set);
      EXPECT_FALSE(std::isnan(values.out[1])) << name(set);
    }
  }
}

}  // namespace
}  // namespace hsm::kernels
