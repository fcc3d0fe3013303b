#include "decode/scripted_scorer.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace hsm::testing {
namespace {

constexpr float kZero = -std::numeric_limits<float>::infinity();

// Each ≤ 0; at least one above 0 probability.
std::vector<float> random_row(size_t size, Tables tables, std::mt19937& random) {
  std::vector<float> row(size);
  if (tables == Tables::coarse) {
    for (float& value : row) value = -0.25F * static_cast<float>(random() % 8);
    return row;
  }
  std::normal_distribution<float> logit(0, 1.5F);
  double sum = 0;
  for (size_t i = 0; i < size; ++i) {
    const bool zero = tables == Tables::zeros && i != 0 && random() % 2 == 0;
    row[i] = zero ? kZero : logit(random);
    sum += std::exp(double{row[i]});
  }
  for (float& value : row) value = std::min(0.0F, static_cast<float>(double{value} - std::log(sum)));
  std::shuffle(row.begin(), row.end(), random);
  return row;
}

}  // namespace

ScriptedShape random_shape(int32_t words, int32_t shortlist, int32_t clusters, uint32_t seed) {
  std::mt19937 random(seed);
  std::vector<int32_t> ids(static_cast<size_t>(words));
  std::iota(ids.begin(), ids.end(), 0);
  std::shuffle(ids.begin(), ids.end(), random);
  ScriptedShape shape;
  shape.end = words / 2;
  shape.shortlist.assign(ids.begin(), ids.begin() + shortlist);
  for (int32_t i = shortlist; i < words; ++i) {
    const int32_t next = i - shortlist;
    if (next < clusters) shape.clusters.emplace_back();
    const size_t cluster = next < clusters ? static_cast<size_t>(next) : random() % shape.clusters.size();
    shape.clusters[cluster].push_back(ids[static_cast<size_t>(i)]);
  }
  return shape;
}

ScriptedScorer::ScriptedScorer(ScriptedShape shape, Tables tables, uint32_t seed) : shape_(std::move(shape)) {
  size_t words = shape_.shortlist.size();
  for (const auto& cluster : shape_.clusters) words += cluster.size();
  places_.resize(words);
  for (size_t i = 0; i < shape_.shortlist.size(); ++i) {
    places_[static_cast<size_t>(shape_.shortlist[i])] = {-1, static_cast<int32_t>(i)};
  }
  std::mt19937 random(seed);
  leaves_.resize(shape_.clusters.size());
  for (size_t c = 0; c < shape_.clusters.size(); ++c) {
    const auto& cluster = shape_.clusters[c];
    for (size_t i = 0; i < cluster.size(); ++i) {
      places_[static_cast<size_t>(cluster[i])] = {static_cast<int32_t>(c), static_cast<int32_t>(i)};
    }
    for (int64_t context = 0; context < shape_.contexts; ++context) {
      leaves_[c].push_back(random_row(cluster.size(), tables, random));
    }
  }
  for (int64_t context = 0; context < shape_.contexts; ++context) {
    root_.push_back(random_row(shape_.shortlist.size() + shape_.clusters.size(), tables, random));
  }
}

void ScriptedScorer::advance(std::span<const int32_t> tokens, float* state, float* head,
                             float* scratch) const {
  constexpr int kModulus[3] = {101, 103, 107};
  for (size_t row = 0; row < tokens.size(); ++row) {
    float* own = state + 3 * row;
    int sum = 0;
    for (int i = 0; i < 3; ++i) {
      const int next = (static_cast<int>(own[i]) * (5 + i) + tokens[row] * (3 + i) + 1) % kModulus[i];
      own[i] = static_cast<float>(next);
      sum += (i + 1) * next;
    }
    head[row] = static_cast<float>(sum % shape_.contexts);
    scratch[row] = head[row];  // written, so that a sanitizer sees a scratch that is too small
  }
}

void ScriptedScorer::root(const float* head, int64_t rows, float* log_probs) const {
  for (int64_t row = 0; row < rows; ++row) {
    log_probs = std::copy(root_[static_cast<size_t>(head[row])].begin(),
                          root_[static_cast<size_t>(head[row])].end(), log_probs);
  }
}

void ScriptedScorer::leaves(int64_t cluster, std::span<const float* const> heads, float* log_probs) const {
  for (const float* head : heads) {
    const auto& row = leaves_[static_cast<size_t>(cluster)][static_cast<size_t>(*head)];
    log_probs = std::copy(row.begin(), row.end(), log_probs);
  }
}

void ScriptedScorer::set_root(std::span<const float> log_probs) {
  for (auto& row : root_) row.assign(log_probs.begin(), log_probs.end());
}

void ScriptedScorer::set_leaves(int64_t cluster, std::span<const float> log_probs) {
  for (auto& row : leaves_[static_cast<size_t>(cluster)]) row.assign(log_probs.begin(), log_probs.end());
}

History::History(const Scorer& scorer)
    : scorer_(&scorer),
      state_(static_cast<size_t>(scorer.state_size())),
      head_(static_cast<size_t>(scorer.head_size())),
      scratch_(static_cast<size_t>(scorer.scratch_size(1))) {}

void History::feed(int32_t token) {
  scorer_->advance({&token, 1}, state_.data(), head_.data(), scratch_.data());
}

std::vector<double> History::word_log_probs() const {
  std::vector<double> result(static_cast<size_t>(scorer_->words()));
  const auto shortlist = static_cast<size_t>(scorer_->shortlist());
  std::vector<float> root(shortlist + static_cast<size_t>(scorer_->clusters()));
  scorer_->root(head_.data(), 1, root.data());
  for (size_t column = 0; column < shortlist; ++column) {
    result[static_cast<size_t>(scorer_->shortlist_words()[column])] = double{root[column]};
  }
  for (int64_t cluster = 0; cluster < scorer_->clusters(); ++cluster) {
    const auto words = scorer_->cluster_words(cluster);
    std::vector<float> leaves(words.size(), 0.0F);
    const float* head = head_.data();
    if (words.size() > 1) scorer_->leaves(cluster, {&head, 1}, leaves.data());
    const double within = double{root[shortlist + static_cast<size_t>(cluster)]};
    for (size_t leaf = 0; leaf < words.size(); ++leaf) {
      result[static_cast<size_t>(words[leaf])] = within + double{leaves[leaf]};
    }
  }
  return result;
}

}  // namespace hsm::testing
