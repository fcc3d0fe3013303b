// Decoding's kernels on a GPU against the same in host memory, which tests/gpu holds against the CPU's
// decoder.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <memory>
#include <string>
#include <vector>

#include "device/place.h"
#include "kernels/random_values.h"

namespace hsm::test {
namespace {

namespace dev = kernels::device;
using kernels::Cell;

constexpr int64_t kDim = 37;
constexpr int64_t kShortlist = 70;
constexpr int64_t kRows = 45;
constexpr int64_t kCapacity = 90;

class DecodingOnDevice : public testing::TestWithParam<PlaceKind> {
 protected:
  void SetUp() override {
    std::string why;
    place_ = make_place(GetParam(), dev::Precision::fp32, why);
    if (place_ == nullptr) GTEST_SKIP() << why;
    host_ = make_place(PlaceKind::host, dev::Precision::fp32, why);
  }

  std::unique_ptr<Place> place_;
  std::unique_ptr<Place> host_;
};

/// A head with ragged clusters, rows after which words are asked for, and memory to expand clusters in.
struct Problem {
  explicit Problem(Place& place) {
    std::vector<int64_t> offsets{kShortlist};
    for (const int64_t size : {1, 130, 7, 33, 2, 64, 1, 90, 5}) offsets.push_back(offsets.back() + size);
    head.words = offsets.back();
    head.shortlist = kShortlist;
    head.clusters = static_cast<int64_t>(offsets.size()) - 1;
    head.dim = kDim;
    head.largest_cluster = 130;
    head.end_row = 3;
    head.word = place.copy(random_values<float>(head.words * kDim, 1));
    head.cluster = place.copy(random_values<float>(head.clusters * kDim, 2));
    head.word_bias = place.copy(random_values<float>(head.words, 3));
    head.cluster_bias = place.copy(random_values<float>(head.clusters, 4));
    head.cluster_offsets = place.copy(offsets);
    std::vector<int32_t> ids;
    for (int32_t row = 0; row < head.words; ++row)
      ids.push_back((row * 5 + 2) % static_cast<int32_t>(head.words));
    head.word_of_row = place.copy(ids);
    std::vector<uint32_t> forbidden(static_cast<size_t>(head.words / 32 + 1), 0);
    forbidden[1] = 0x00F00001;
    head.forbidden = place.copy(forbidden);
    root.rows = kRows;
    root.hidden = place.copy(random_values<float>(kRows * kDim, 5));
    root.logit = place.poisoned<float>(kRows * head.root());
    root.part = place.poisoned<dev::LogSum<float>>(kRows * place.decode_kernels().root_parts(head.root()));
    memory.capacity = kCapacity;
    memory.pair = place.poisoned<dev::Ranked>(kCapacity);
    memory.pair_count = place.poisoned<int32_t>(kCapacity);
    memory.order = place.poisoned<int32_t>(kCapacity);
    memory.item_start = place.poisoned<int32_t>(kCapacity + 1);
    memory.item_count = place.poisoned<int32_t>(1);
    memory.leaf_logit = place.poisoned<float>(kCapacity * head.largest_cluster);
    memory.leaf_part = place.poisoned<dev::LogSum<float>>(kCapacity);
    place.decode_kernels().root_scores(head, root);
  }

  dev::DecodeHead head;
  dev::RootRows root;
  dev::ExpansionMemory memory;
};

void expect_near(const std::vector<double>& got, const std::vector<double>& want, double tolerance) {
  ASSERT_EQ(got.size(), want.size());
  for (size_t i = 0; i < want.size(); ++i) EXPECT_NEAR(got[i], want[i], tolerance) << i;
}

std::vector<double> run_layer(Place& place, Cell cell) {
  constexpr int64_t kInput = 29;
  constexpr int64_t kHidden = 41;
  const int64_t gates = kernels::gate_count(cell);
  dev::DecodeKernels& run = place.decode_kernels();
  auto* part = place.poisoned<dev::LogSum<float>>(kRows * run.root_parts(gates * kHidden));
  auto* x = place.poisoned<float>(kRows * kInput);
  std::vector<int32_t> rows;
  for (int32_t i = 0; i < kRows; ++i) rows.push_back(i * 3 % 7);
  run.gather_rows(place.copy(random_values<float>(7 * kInput, 1)), kInput, place.copy(rows), kRows, x);
  auto* input = place.poisoned<float>(kRows * gates * kHidden);
  auto* state = place.poisoned<float>(kRows * gates * kHidden);
  auto* h = place.copy(random_values<float>(kRows * kHidden, 2));
  auto* c = place.copy(random_values<float>(kRows * kHidden, 3));
  run.linear({kRows, kInput, gates * kHidden, x,
              place.copy(random_values<float>(gates * kHidden * kInput, 4)),
              place.copy(random_values<float>(gates * kHidden, 5)), input, part});
  run.linear({kRows, kHidden, gates * kHidden, h,
              place.copy(random_values<float>(gates * kHidden * kHidden, 6)),
              place.copy(random_values<float>(gates * kHidden, 7)), state, part});
  std::vector<int32_t> fed(kRows, 1);
  fed[4] = 0;
  run.cell_step({cell, kHidden, input, state, place.copy(fed), h, c}, kRows);
  place.wait();
  std::vector<double> result(h, h + kRows * kHidden);
  result.insert(result.end(), c, c + kRows * kHidden);
  return result;
}

TEST_P(DecodingOnDevice, LayersStep) {
  for (const auto cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    expect_near(run_layer(*place_, cell), run_layer(*host_, cell), 1e-5);
  }
}

/// Best words of queries of several rows, page after page: scores, then words and parents.
std::vector<double> run_search(Place& place, int32_t kept, int pages) {
  Problem problem(place);
  const std::vector<int32_t> first{0, 7, 8, 30, static_cast<int32_t>(kRows)};
  std::vector<int32_t> query_of_row;
  for (int32_t query = 0; query < 4; ++query)
    query_of_row.resize(static_cast<size_t>(first[static_cast<size_t>(query) + 1]), query);
  auto* after = place.copy(std::vector<dev::Ranked>(4, dev::first_rank()));
  dev::SearchPass pass;
  pass.head = problem.head;
  pass.root = problem.root;
  pass.memory = problem.memory;
  pass.queries = 4;
  pass.kept = kept;
  pass.pairs_a_round = 5;
  pass.first_row = place.copy(first);
  pass.query_of_row = place.copy(query_of_row);
  pass.score = place.copy(random_values<double>(kRows, 8));
  pass.after = after;
  pass.root_log_sum = place.poisoned<float>(kRows);
  pass.row_best = place.poisoned<dev::Ranked>(kRows * kept);
  pass.last_pair = place.poisoned<dev::Ranked>(4);
  pass.pair_best = place.poisoned<dev::Ranked>(int64_t{20} * kept);
  pass.best = place.poisoned<dev::Ranked>(int64_t{4} * kept);
  pass.more = place.poisoned<int32_t>(4);
  pass.end_log_prob = place.poisoned<float>(kRows);
  pass.expanded = place.copy(std::vector<int64_t>(4, 0));
  std::vector<double> result;
  for (int page = 0; page < pages; ++page) {
    place.decode_kernels().search_start(pass);
    place.wait();
    for (int round = 0; std::count(pass.more, pass.more + 4, 0) < 4; ++round) {
      if (round == 1000) throw std::runtime_error("the search does not end");
      place.decode_kernels().search_round(pass);
      place.wait();
    }
    for (int32_t i = 0; i < 4 * kept; ++i) {
      const dev::Ranked& found = pass.best[i];
      result.insert(result.end(), {std::max(found.score, -1e9), double(found.first), double(found.second)});
    }
    for (int32_t query = 0; query < 4; ++query) after[query] = pass.best[(query + 1) * kept - 1];
  }
  result.insert(result.end(), pass.end_log_prob, pass.end_log_prob + kRows);
  result.insert(result.end(), pass.expanded, pass.expanded + 4);
  return result;
}

TEST_P(DecodingOnDevice, SearchesFindTheSameWords) {
  expect_near(run_search(*place_, 16, 3), run_search(*host_, 16, 3), 1e-4);
  expect_near(run_search(*place_, 600, 2), run_search(*host_, 600, 2), 1e-4);  // lists of the longer kind
}

std::vector<double> run_word_scores(Place& place) {
  const Problem problem(place);
  std::vector<dev::Ranked> pair;
  std::vector<int32_t> pair_count;
  std::vector<int32_t> row;
  std::vector<int32_t> column;
  std::vector<int32_t> leaf;
  for (int32_t i = 0; i < kCapacity; ++i) {
    const bool expands = i % 3 != 0;
    pair.push_back({0, 0, i % 2 == 0 ? 1 : 7});
    pair_count.push_back(expands ? 1 : 0);
    row.push_back(i * 7 % static_cast<int32_t>(kRows));
    column.push_back(expands ? static_cast<int32_t>(kShortlist) + pair.back().second : i % 70);
    leaf.push_back(expands ? i % 90 : -1);
  }
  dev::WordScorePass pass;
  pass.head = problem.head;
  pass.root = problem.root;
  pass.memory = problem.memory;
  pass.memory.pair = place.copy(pair);
  pass.memory.pair_count = place.copy(pair_count);
  pass.questions = static_cast<int32_t>(kCapacity);
  pass.row = place.copy(row);
  pass.column = place.copy(column);
  pass.leaf = place.copy(leaf);
  pass.log_prob = place.poisoned<double>(kCapacity);
  place.decode_kernels().word_scores(pass);
  place.wait();
  return {pass.log_prob, pass.log_prob + kCapacity};
}

TEST_P(DecodingOnDevice, WordsHaveTheSameScores) {
  expect_near(run_word_scores(*place_), run_word_scores(*host_), 1e-4);
}

std::vector<double> run_draws(Place& place, double temperature) {
  const Problem problem(place);
  std::vector<int32_t> row;
  std::vector<dev::DrawRequest> request;
  for (int32_t i = 0; i < kCapacity; ++i) {
    row.push_back(i * 7 % static_cast<int32_t>(kRows));
    request.push_back({static_cast<uint64_t>(1000 + i), 5, row.back(), i % 2});
  }
  dev::DrawPass pass;
  pass.head = problem.head;
  pass.root = problem.root;
  pass.memory = problem.memory;
  pass.draws = static_cast<int32_t>(kCapacity);
  pass.power = 1 / temperature;
  pass.key0 = 11;
  pass.key1 = 12;
  pass.row = place.copy(row);
  pass.request = place.copy(request);
  pass.drawn = place.poisoned<dev::DrawnWord>(kCapacity);
  pass.log_weight = place.poisoned<float>(kCapacity * problem.head.root());
  pass.starts = true;
  for (int round = 0;; ++round) {
    if (round == 1000) throw std::runtime_error("the draws do not end");
    place.decode_kernels().draw_round(pass);
    place.wait();
    pass.starts = false;
    if (std::none_of(pass.drawn, pass.drawn + kCapacity,
                     [](const dev::DrawnWord& drawn) { return drawn.word == dev::kUndecided; }))
      break;
  }
  std::vector<double> result;
  for (int64_t i = 0; i < kCapacity; ++i) {
    result.insert(result.end(),
                  {double(pass.drawn[i].word), pass.drawn[i].log_prob, double(pass.drawn[i].proposals)});
  }
  return result;
}

TEST_P(DecodingOnDevice, DrawsComeToTheSameWords) {
  for (const double temperature : {0.7, 1.0, 1.5}) {
    expect_near(run_draws(*place_, temperature), run_draws(*host_, temperature), 1e-4);
  }
}

INSTANTIATE_TEST_SUITE_P(Places, DecodingOnDevice, testing::Values(PlaceKind::host, PlaceKind::gpu),
                         [](const auto& instance) {
                           return std::string(instance.param == PlaceKind::host ? "host_" : "gpu_") + "fp32";
                         });

}  // namespace
}  // namespace hsm::test
