#include "kernels/recurrent.h"

#include <gtest/gtest.h>

#include <cmath>
#include <string>
#include <vector>

#include "base/random.h"

namespace hsm::kernels {
namespace {

struct Shape {
  Cell cell;
  int64_t steps;
  int64_t streams;
  int64_t input;
  int64_t hidden;

  [[nodiscard]] int64_t width() const { return gate_count(cell) * hidden; }
  [[nodiscard]] int64_t rows() const { return steps * streams; }
};

std::ostream& operator<<(std::ostream& out, const Shape& s) {
  return out << "cell " << static_cast<int>(s.cell) << " T" << s.steps << " B" << s.streams << " I" << s.input
             << " H" << s.hidden;
}

template <class T>
std::vector<T> values(int64_t count, uint64_t stream, double range) {
  std::vector<T> out(static_cast<size_t>(count));
  const CounterRandom random(11, Purpose::initialization);
  for (size_t i = 0; i < out.size(); ++i)
    out[i] = static_cast<T>((2 * random.uniform(stream, i) - 1) * range);
  return out;
}

// Everything a layer reads, and what it writes.
template <class T>
struct Problem {
  explicit Problem(const Shape& s)
      : shape(s),
        x(values<T>(s.rows() * s.input, 1, 1)),
        state(values<T>(s.streams * state_width(s.cell, s.hidden), 2, 0.8)),
        weight_input(values<T>(s.width() * s.input, 3, 0.6)),
        weight_hidden(values<T>(s.width() * s.hidden, 4, 1 / std::sqrt(static_cast<double>(s.hidden)))),
        bias_input(values<T>(s.width(), 5, 0.5)),
        bias_hidden(values<T>(s.width(), 6, 0.5)),
        upstream(values<T>(s.rows() * s.hidden, 7, 1)) {}

  LayerWeights<const T> weights() const {
    return {weight_input.data(), weight_hidden.data(), bias_input.data(), bias_hidden.data()};
  }

  Shape shape;
  std::vector<T> x, state, weight_input, weight_hidden, bias_input, bias_hidden, upstream;
};

double sigmoid(double x) {
  return 1 / (1 + std::exp(-x));
}

// Straight from the formulas in cell.h, stream by stream: outputs, and the state afterwards.
struct Reference {
  explicit Reference(const Problem<double>& p) : state(p.state) {
    const Shape& s = p.shape;
    const int64_t h = s.hidden;
    output.resize(static_cast<size_t>(s.rows() * h));
    for (int64_t b = 0; b < s.streams; ++b) {
      double* own = state.data() + b * state_width(s.cell, h);
      for (int64_t t = 0; t < s.steps; ++t) {
        std::vector<double> from_x(static_cast<size_t>(s.width()));
        std::vector<double> from_h(from_x.size());
        for (int64_t g = 0; g < s.width(); ++g) {
          double& a = from_x[static_cast<size_t>(g)] = p.bias_input[static_cast<size_t>(g)];
          double& c = from_h[static_cast<size_t>(g)] = p.bias_hidden[static_cast<size_t>(g)];
          for (int64_t i = 0; i < s.input; ++i) {
            a += p.weight_input[static_cast<size_t>(g * s.input + i)] *
                 p.x[static_cast<size_t>((t * s.streams + b) * s.input + i)];
          }
          for (int64_t i = 0; i < h; ++i) c += p.weight_hidden[static_cast<size_t>(g * h + i)] * own[i];
        }
        const auto x_part = [&](int64_t gate, int64_t u) {
          return from_x[static_cast<size_t>(gate * h + u)];
        };
        const auto h_part = [&](int64_t gate, int64_t u) {
          return from_h[static_cast<size_t>(gate * h + u)];
        };
        const auto both = [&](int64_t gate, int64_t u) { return x_part(gate, u) + h_part(gate, u); };
        for (int64_t u = 0; u < h; ++u) {
          switch (s.cell) {
            case Cell::lstm:
              own[h + u] = sigmoid(both(1, u)) * own[h + u] + sigmoid(both(0, u)) * std::tanh(both(2, u));
              own[u] = sigmoid(both(3, u)) * std::tanh(own[h + u]);
              break;
            case Cell::gru: {
              const double n = std::tanh(x_part(2, u) + sigmoid(both(0, u)) * h_part(2, u));
              own[u] = (1 - sigmoid(both(1, u))) * n + sigmoid(both(1, u)) * own[u];
              break;
            }
            case Cell::rnn_tanh:
              own[u] = std::tanh(both(0, u));
              break;
            case Cell::rnn_relu:
              own[u] = std::max(0.0, both(0, u));
              break;
          }
          output[static_cast<size_t>((t * s.streams + b) * h + u)] = own[u];
        }
      }
    }
  }
  std::vector<double> output;
  std::vector<double> state;
};

template <class T>
struct Result {
  std::vector<T> output, state, dx, d_weight_input, d_weight_hidden, d_bias_input, d_bias_hidden;
};

template <class T>
Result<T> run(const Problem<T>& p, int threads) {
  const Shape& s = p.shape;
  ThreadPool pool(threads);
  RecurrentLayer<T> layer(s.cell, s.input, s.hidden);
  Result<T> r{std::vector<T>(p.upstream.size()),
              p.state,
              std::vector<T>(p.x.size()),
              std::vector<T>(p.weight_input.size()),
              std::vector<T>(p.weight_hidden.size()),
              std::vector<T>(p.bias_input.size()),
              std::vector<T>(p.bias_hidden.size())};
  layer.forward(p.weights(), s.steps, s.streams, {p.x.data()}, r.state.data(), state_width(s.cell, s.hidden),
                r.output.data(), pool);
  layer.backward(
      p.weights(), p.upstream.data(), r.dx.data(),
      {r.d_weight_input.data(), r.d_weight_hidden.data(), r.d_bias_input.data(), r.d_bias_hidden.data()},
      pool);
  return r;
}

class RecurrentLayerTest : public ::testing::TestWithParam<Shape> {};

TEST_P(RecurrentLayerTest, ForwardFollowsTheFormulas) {
  const Problem<double> problem(GetParam());
  const Reference reference(problem);
  const auto result = run(problem, 2);
  for (size_t i = 0; i < reference.output.size(); ++i)
    ASSERT_NEAR(result.output[i], reference.output[i], 1e-12);
  for (size_t i = 0; i < reference.state.size(); ++i) ASSERT_NEAR(result.state[i], reference.state[i], 1e-12);
}

// The loss is Σ upstream · output; central differences of the reference in double.
TEST_P(RecurrentLayerTest, GradientsEqualFiniteDifferences) {
  Problem<double> problem(GetParam());
  const auto result = run(problem, 3);
  const auto loss = [&] {
    const Reference reference(problem);
    double sum = 0;
    for (size_t i = 0; i < reference.output.size(); ++i) sum += reference.output[i] * problem.upstream[i];
    return sum;
  };
  const auto check = [&](const char* name, std::vector<double>& variable,
                         const std::vector<double>& gradient) {
    const size_t stride = std::max<size_t>(1, variable.size() / 23);
    for (size_t i = 0; i < variable.size(); i += stride) {
      const double before = variable[i];
      constexpr double kStep = 1e-6;
      variable[i] = before + kStep;
      const double up = loss();
      variable[i] = before - kStep;
      const double down = loss();
      variable[i] = before;
      ASSERT_NEAR(gradient[i], (up - down) / (2 * kStep), 2e-6) << name << " " << i;
    }
  };
  check("x", problem.x, result.dx);
  check("weight_ih", problem.weight_input, result.d_weight_input);
  check("weight_hh", problem.weight_hidden, result.d_weight_hidden);
  check("bias_ih", problem.bias_input, result.d_bias_input);
  check("bias_hh", problem.bias_hidden, result.d_bias_hidden);
}

TEST_P(RecurrentLayerTest, FloatIsTheSameBitsForAnyNumberOfThreadsAndNearDouble) {
  const Problem<float> problem(GetParam());
  const auto one = run(problem, 1);
  for (const int threads : {2, 3, 5}) {
    const auto many = run(problem, threads);
    EXPECT_EQ(one.output, many.output);
    EXPECT_EQ(one.state, many.state);
    EXPECT_EQ(one.dx, many.dx);
    EXPECT_EQ(one.d_weight_input, many.d_weight_input);
    EXPECT_EQ(one.d_weight_hidden, many.d_weight_hidden);
    EXPECT_EQ(one.d_bias_input, many.d_bias_input);
    EXPECT_EQ(one.d_bias_hidden, many.d_bias_hidden);
  }
  const auto wide = run(Problem<double>(GetParam()), 1);
  for (size_t i = 0; i < wide.d_weight_hidden.size(); ++i) {
    ASSERT_NEAR(one.d_weight_hidden[i], wide.d_weight_hidden[i], 2e-4) << i;
  }
}

TEST_P(RecurrentLayerTest, TwoWindowsCarryTheStateAsOne) {
  const Problem<float> problem(GetParam());
  const Shape& s = GetParam();
  ThreadPool pool(2);
  const auto whole = run(problem, 2);
  RecurrentLayer<float> layer(s.cell, s.input, s.hidden);
  auto state = problem.state;
  std::vector<float> output(problem.upstream.size());
  const int64_t cut = (s.steps + 1) / 2;
  const int64_t stride = state_width(s.cell, s.hidden);
  layer.forward(problem.weights(), cut, s.streams, {problem.x.data()}, state.data(), stride, output.data(),
                pool);
  if (cut < s.steps) {
    layer.forward(problem.weights(), s.steps - cut, s.streams, {problem.x.data() + cut * s.streams * s.input},
                  state.data(), stride, output.data() + cut * s.streams * s.hidden, pool);
  }
  EXPECT_EQ(output, whole.output);
  EXPECT_EQ(state, whole.state);
}

// Steps and streams that read the same row: the layer given rows once is the layer given them anew each time.
TEST_P(RecurrentLayerTest, SharedInputRowsAreTheSameAsCopies) {
  Problem<double> problem(GetParam());
  const Shape& s = GetParam();
  std::vector<int64_t> row_of_token(static_cast<size_t>(s.rows()));
  for (size_t i = 0; i < row_of_token.size(); ++i) row_of_token[i] = static_cast<int64_t>(i * i % 5);
  RowGroups groups;
  groups.assign(row_of_token);
  const std::vector<double> table(problem.x.begin(), problem.x.begin() + groups.size() * s.input);
  for (size_t i = 0; i < row_of_token.size(); ++i)
    std::copy_n(table.begin() + groups.place[i] * s.input, s.input,
                problem.x.begin() + static_cast<int64_t>(i) * s.input);
  const auto copies = run(problem, 2);

  ThreadPool pool(2);
  RecurrentLayer<double> layer(s.cell, s.input, s.hidden);
  Result<double> shared = copies;
  shared.state = problem.state;
  shared.dx.assign(table.size(), -1);
  layer.forward(problem.weights(), s.steps, s.streams, {table.data(), &groups}, shared.state.data(),
                state_width(s.cell, s.hidden), shared.output.data(), pool);
  layer.backward(problem.weights(), problem.upstream.data(), shared.dx.data(),
                 {shared.d_weight_input.data(), shared.d_weight_hidden.data(), shared.d_bias_input.data(),
                  shared.d_bias_hidden.data()},
                 pool);
  EXPECT_EQ(shared.output, copies.output);
  EXPECT_EQ(shared.state, copies.state);
  std::vector<double> dx(table.size());
  sum_groups<double>(groups, {}, copies.dx.data(), s.input, dx.data(), pool);
  const auto expect_near = [](const std::vector<double>& a, const std::vector<double>& b) {
    ASSERT_EQ(a.size(), b.size());
    for (size_t i = 0; i < a.size(); ++i) ASSERT_NEAR(a[i], b[i], 1e-12) << i;
  };
  expect_near(shared.dx, dx);
  expect_near(shared.d_weight_input, copies.d_weight_input);
  expect_near(shared.d_weight_hidden, copies.d_weight_hidden);
  expect_near(shared.d_bias_input, copies.d_bias_input);
  expect_near(shared.d_bias_hidden, copies.d_bias_hidden);
}

std::vector<Shape> shapes() {
  std::vector<Shape> all;
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    all.push_back({cell, 1, 1, 1, 1});
    all.push_back({cell, 5, 3, 4, 7});
    all.push_back({cell, 2, 7, 33, 17});
    all.push_back({cell, 9, 1, 6, 67});
    all.push_back({cell, 19, 16, 5, 6});  // enough streams and steps for blocks of steps, by two threads
  }
  return all;
}

INSTANTIATE_TEST_SUITE_P(Cells, RecurrentLayerTest, ::testing::ValuesIn(shapes()));

}  // namespace
}  // namespace hsm::kernels
