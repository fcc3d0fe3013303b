// The device's kernels, the same bodies run in host memory and on a GPU. Without one those are skipped.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <memory>
#include <string>
#include <tuple>
#include <vector>

#include "device/place.h"
#include "emulation/head_bounds.h"
#include "emulation/head_harness.h"
#include "kernels/device/host_kernels.h"
#include "kernels/head.h"
#include "kernels/random_values.h"

namespace hsm::test {
namespace {

namespace dev = kernels::device;
using dev::Precision;
using emulation::HeadCase;

const std::vector<Precision> kPrecisions{Precision::fp32, Precision::tf32, Precision::bf16, Precision::fp16};
constexpr const char* kPrecisionNames[] = {"fp32", "tf32", "bf16", "fp16"};

class OnDevice : public testing::TestWithParam<std::tuple<PlaceKind, Precision>> {
 protected:
  void SetUp() override {
    std::string why;
    place_ = make_place(std::get<0>(GetParam()), precision(), why);
    if (place_ == nullptr) GTEST_SKIP() << why;
  }
  static Precision precision() { return std::get<1>(GetParam()); }
  dev::DeviceKernels& kernels() { return place_->kernels(); }

  std::unique_ptr<Place> place_;
};

// ---- the head against the oracle in double precision

std::vector<HeadCase> head_cases() {
  return {{"one_token", 3, {1, 7, 31, 1, 2, 75, 3}, 7, 1},
          {"odd_sizes", 3, {1, 7, 31, 1, 2, 75, 3}, 37, 53, 0.3},
          {"no_shortlist", 0, {5, 1, 40}, 64, 33},
          {"no_clusters", 45, {}, 64, 33},
          {"all_in_one", 2, {9, 300, 2}, 33, 150, 0, 1},
          {"several_tiles", 200, {150, 90, 1, 260}, 128, 300, 0.1},
          {"wide", 70, {40, 130}, 640, 70, 0, -1, 0.2},
          {"widest", 10, {20, 30}, 1100, 20, 0, -1, 0.2}};
}

/// What `place` makes of a case, in the shapes of the oracle.
template <class P>
reference::HeadAnswer run_head(Place& place, const emulation::HeadRun<P>& run) {
  const auto& in = run.args().in;
  const dev::HeadSizes& sizes = run.args().plan.sizes;
  const auto copy = [&](const auto& view) { return place.copy(view.p, view.n); };
  const int64_t rows = sizes.shortlist + sizes.most_hit_rows;
  dev::HeadPass pass;
  pass.sizes = sizes;
  pass.hidden = copy(in.hidden);
  pass.word = copy(in.word);
  pass.cluster = copy(in.cluster);
  pass.word_bias = copy(in.word_bias);
  pass.cluster_bias = copy(in.cluster_bias);
  pass.cluster_offsets = copy(in.cluster_offsets);
  pass.cluster_of_row = copy(in.cluster_of_row);
  pass.targets = copy(in.targets);
  pass.scale = copy(in.scale);
  pass.scratch = place.poisoned<char>(place.kernels().head_scratch_bytes(sizes));
  auto* hidden = place.poisoned<typename P::T>(sizes.tokens * sizes.dim);
  pass.loss = place.poisoned<float>(1);
  pass.hidden_gradient = hidden;
  pass.word_gradient = place.poisoned<float>(rows * sizes.dim);
  pass.word_bias_gradient = place.poisoned<float>(rows);
  pass.cluster_gradient = place.poisoned<float>(sizes.clusters * sizes.dim);
  pass.cluster_bias_gradient = place.poisoned<float>(sizes.clusters);
  place.kernels().head(pass);
  place.wait();

  reference::HeadAnswer answer;
  answer.loss = *pass.loss;
  for (int64_t i = 0; i < sizes.tokens * sizes.dim; ++i) {
    answer.hidden.push_back(dev::Element<typename P::T>::load(hidden[i]));
  }
  answer.word.resize(static_cast<size_t>(sizes.words * sizes.dim));
  answer.word_bias.resize(static_cast<size_t>(sizes.words));
  const std::vector<int64_t> targets(in.targets.p, in.targets.p + in.targets.n);
  const kernels::HeadShape shape{sizes.words,
                                 sizes.shortlist,
                                 sizes.dim,
                                 {in.cluster_offsets.p, static_cast<size_t>(in.cluster_offsets.n)},
                                 {in.cluster_of_row.p, static_cast<size_t>(in.cluster_of_row.n)}};
  const std::vector<int64_t> touched = kernels::touched_rows(shape, targets);
  for (size_t i = 0; i < touched.size(); ++i) {
    const auto row = static_cast<size_t>(touched[i]);
    answer.word_bias[row] = pass.word_bias_gradient[i];
    const float* from = pass.word_gradient + static_cast<int64_t>(i) * sizes.dim;
    std::copy_n(from, sizes.dim, answer.word.begin() + static_cast<int64_t>(row) * sizes.dim);
  }
  answer.cluster.assign(pass.cluster_gradient, pass.cluster_gradient + sizes.clusters * sizes.dim);
  answer.cluster_bias.assign(pass.cluster_bias_gradient, pass.cluster_bias_gradient + sizes.clusters);
  return answer;
}

template <class P>
void expect_oracle(Place& place) {
  for (const HeadCase& c : head_cases()) {
    emulation::HeadRun<P> run(c.problem(), dev::HeadTiles{}, 0.5);
    run.prepare();
    const reference::HeadAnswer first = run_head(place, run);
    EXPECT_EQ(emulation::compare_head(run.rounded(), first, 0.5, emulation::rounding_of<P>()), "") << c.name;
    const reference::HeadAnswer again = run_head(place, run);
    EXPECT_EQ(again.loss, first.loss) << c.name;
    EXPECT_EQ(again.hidden, first.hidden) << c.name;
    EXPECT_EQ(again.word, first.word) << c.name;
    EXPECT_EQ(again.cluster, first.cluster) << c.name;
  }
}

TEST_P(OnDevice, TheHeadIsTheOraclesAndTwiceTheSameBits) {
  switch (precision()) {
    case Precision::fp32:
      return expect_oracle<dev::Fma<float>>(*place_);
    case Precision::tf32:
      return expect_oracle<dev::Tf32>(*place_);
    case Precision::bf16:
      return expect_oracle<dev::Bf16>(*place_);
    case Precision::fp16:
      return expect_oracle<dev::Fp16>(*place_);
  }
}

// ---- the others against the same in host memory

constexpr int64_t kRows = 53;
constexpr int64_t kWidth = 37;
constexpr int64_t kTokens = 301;

/// Elements of `precision`, as bytes.
std::vector<char> elements(Precision precision, int64_t count, uint64_t seed) {
  const std::vector<float> values = random_values<float>(count, seed);
  std::vector<char> bytes;
  const auto put = [&](auto element) {
    const auto* from = reinterpret_cast<const char*>(&element);
    bytes.insert(bytes.end(), from, from + sizeof element);
  };
  for (const float value : values) {
    if (precision == Precision::bf16) {
      put(dev::to_bfloat16(value));
    } else if (precision == Precision::fp16) {
      put(dev::to_half(value));
    } else {
      put(value);
    }
  }
  return bytes;
}

std::vector<int32_t> some_rows() {
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < kTokens; ++i) rows.push_back(i * 7 % static_cast<int32_t>(kRows));
  return rows;
}

/// Runs `body(place)`, which returns bytes, here and in host memory.
template <class Body>
void expect_same_bytes(Place& place, Precision precision, const Body& body) {
  std::string why;
  const auto host = make_place(PlaceKind::host, precision, why);
  EXPECT_EQ(body(place), body(*host));
}

std::vector<char> bytes_of(Place& place, const void* memory, int64_t count) {
  place.wait();
  const auto* from = static_cast<const char*>(memory);
  return {from, from + count};
}

TEST_P(OnDevice, RowsAreGatheredScaledAndDropped) {
  const auto size = static_cast<int64_t>(elements(precision(), 1, 1).size());
  expect_same_bytes(*place_, precision(), [&](Place& place) {
    const std::vector<char> table = elements(precision(), kRows * kWidth, 1);
    char* out = place.poisoned<char>(kTokens * kWidth * size);
    place.kernels().gather_rows(place.copy(table), kWidth, place.copy(some_rows()),
                                place.copy(random_values<float>(kTokens, 2)), kTokens, out);
    place.kernels().dropout({11, 3, 5, 1, 43, 7, 2, kWidth, 0.3, false}, out);
    return bytes_of(place, out, kTokens * kWidth * size);
  });
}

TEST_P(OnDevice, GradientsOfRowsAreAddedInOrder) {
  expect_same_bytes(*place_, precision(), [&](Place& place) {
    const std::vector<char> gradient = elements(precision(), kTokens * kWidth, 1);
    std::vector<int32_t> order(kTokens);
    std::vector<int32_t> starts{0};
    for (int32_t i = 0; i < kTokens; ++i) order[static_cast<size_t>(i)] = (i * 8) % kTokens;
    for (int32_t row = 1; row <= kRows; ++row) starts.push_back(static_cast<int32_t>(kTokens * row / kRows));
    auto* sums = place.poisoned<float>(kRows * kWidth);
    place.kernels().sum_rows(place.copy(gradient), kWidth, place.copy(order), place.copy(starts), nullptr,
                             kRows, sums);
    auto* all = place.copy(random_values<float>(2 * kRows * kWidth, 3));
    std::vector<int32_t> places;
    for (int32_t row = 0; row < kRows; ++row) places.push_back(2 * row + row % 2);
    place.kernels().add_rows(sums, place.copy(places), kWidth, kRows, all);
    return bytes_of(place, all, 2 * kRows * kWidth * 4);
  });
}

TEST_P(OnDevice, PenaltiesOnActivations) {
  const auto size = static_cast<int64_t>(elements(precision(), 1, 1).size());
  expect_same_bytes(*place_, precision(), [&](Place& place) {
    std::vector<int32_t> targets = some_rows();  // 43 steps of 7 streams
    for (size_t i = 0; i < targets.size(); i += 5) targets[i] = -1;
    char* gradient = place.copy(elements(precision(), kTokens * kWidth, 1));
    const dev::PenaltyPlace penalty{place.copy(targets),
                                    43,
                                    7,
                                    kWidth,
                                    0.3F,
                                    place.copy(elements(precision(), kTokens * kWidth, 2)),
                                    gradient};
    place.kernels().add_activation_penalty(penalty);
    place.kernels().add_temporal_penalty(penalty);
    return bytes_of(place, gradient, kTokens * kWidth * size);
  });
}

TEST_P(OnDevice, NormClippingUpdateAndMean) {
  using dev::StepOutcome;
  constexpr int64_t kCount = 100003;
  const std::vector<float> start = random_values<float>(kCount, 1);
  for (const auto kind :
       {kernels::OptimizerKind::sgd, kernels::OptimizerKind::momentum, kernels::OptimizerKind::adagrad,
        kernels::OptimizerKind::adam, kernels::OptimizerKind::adamw}) {
    const auto run = [&](Place& place) {
      const float* gradient = place.copy(random_values<float>(kCount, 2));
      auto* squares = place.poisoned<double>(1);
      auto* outcome = place.copy(std::vector<StepOutcome>{{0, 0, 6, 0, 0, 0, 0}});
      auto* scratch = place.poisoned<double>(dev::DeviceKernels::kNormScratch);
      place.kernels().sum_of_squares({gradient, kCount}, squares, scratch);
      place.kernels().clip_norm(
          {squares, 1, place.copy(std::vector<float>{3}), 1, 20, 1, 0.1, 0.9, 0.99, outcome});
      dev::UpdateValues<void> values{};
      values.rule = {.kind = kind,
                     .decay = 0.01F,
                     .keep = 0.999F,
                     .momentum = 0.9F,
                     .rest1 = 0.1F,
                     .beta2 = 0.99F,
                     .rest2 = 0.01F,
                     .epsilon = 1e-6F};
      values.outcome = outcome;
      values.gradient = gradient;
      values.width = 1;
      values.value = place.copy(start);
      values.first = place.copy(random_values<float>(kCount, 3));
      std::vector<float> second = random_values<float>(kCount, 4);
      for (float& value : second) value = std::abs(value);
      values.second = place.copy(second);
      place.kernels().update(values, kCount);
      float* mean = place.copy(random_values<float>(kCount, 5));
      place.kernels().average({outcome, 3, values.value, mean}, kCount);
      place.wait();
      EXPECT_EQ(outcome->updates, 7);
      EXPECT_EQ(outcome->ok, 1);
      EXPECT_LT(outcome->coefficient, 0.5F);
      std::vector<float> result(values.value, values.value + kCount);
      result.insert(result.end(), mean, mean + kCount);
      result.push_back(static_cast<float>(outcome->norm));
      return result;
    };
    std::string why;
    const auto host = make_place(PlaceKind::host, precision(), why);
    const std::vector<float> expected = run(*host);
    const std::vector<float> got = run(*place_);
    double worst = 0;
    for (size_t i = 0; i < expected.size(); ++i) {
      worst =
          std::max(worst, std::abs(static_cast<double>(got[i]) - expected[i]) / (1 + std::abs(expected[i])));
    }
    EXPECT_LT(worst, 1e-5) << "optimiser " << static_cast<int>(kind);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, OnDevice,
                         testing::Combine(testing::Values(PlaceKind::host, PlaceKind::gpu),
                                          testing::ValuesIn(kPrecisions)),
                         [](const auto& instance) {
                           const bool host = std::get<0>(instance.param) == PlaceKind::host;
                           return std::string(host ? "host_" : "gpu_") +
                                  kPrecisionNames[static_cast<int>(std::get<1>(instance.param))];
                         });

}  // namespace
}  // namespace hsm::test
