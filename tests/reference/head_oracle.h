#pragma once
#include <algorithm>
#include <cmath>
#include <cstdint>
#include <vector>

namespace hsm::reference {

// The two-level softmax in double precision, straight from its formula, one token after the other: no tiles,
// no sorting, no sharing of work. For tests.

struct HeadProblem {
  int64_t words = 0;
  int64_t shortlist = 0;
  int64_t dim = 0;
  std::vector<int64_t> cluster_offsets;  ///< clusters + 1, from `shortlist` to `words`
  std::vector<double> word;              ///< [words, dim]
  std::vector<double> word_bias;         ///< [words]
  std::vector<double> cluster;           ///< [clusters, dim]
  std::vector<double> cluster_bias;      ///< [clusters]
  std::vector<double> hidden;            ///< [tokens, dim]
  std::vector<int64_t> targets;          ///< rows; negative: no loss

  [[nodiscard]] int64_t clusters() const { return static_cast<int64_t>(cluster_offsets.size()) - 1; }
};

struct HeadAnswer {
  double loss = 0;
  std::vector<double> hidden;  ///< gradients, each in the shape of what it belongs to
  std::vector<double> word;
  std::vector<double> word_bias;
  std::vector<double> cluster;
  std::vector<double> cluster_bias;
};

inline double log_sum_exp(const std::vector<double>& z) {
  const double most = *std::max_element(z.begin(), z.end());
  double sum = 0;
  for (const double value : z) sum += std::exp(value - most);
  return most + std::log(sum);
}

/// One row of a softmax: its weights and bias, and where their gradients are summed.
struct HeadRow {
  const double* weights;
  double bias;
  double* gradient;
  double* bias_gradient;
};

/// −log of the softmax over `rows` at `hit`, with gradients of scale times that.
inline double add_softmax(const std::vector<HeadRow>& rows, size_t hit, const double* h, int64_t dim,
                          double scale, double* h_gradient) {
  std::vector<double> z;
  for (const HeadRow& row : rows) {
    double logit = row.bias;
    for (int64_t d = 0; d < dim; ++d) logit += h[d] * row.weights[d];
    z.push_back(logit);
  }
  const double lse = log_sum_exp(z);
  for (size_t j = 0; j < rows.size(); ++j) {
    const double error = scale * (std::exp(z[j] - lse) - (j == hit ? 1.0 : 0.0));
    *rows[j].bias_gradient += error;
    for (int64_t d = 0; d < dim; ++d) {
      rows[j].gradient[d] += error * h[d];
      h_gradient[d] += error * rows[j].weights[d];
    }
  }
  return lse - z[hit];
}

/// Σ −log P(target | hidden), and the gradients of scale times it.
inline HeadAnswer head_oracle(const HeadProblem& p, double scale = 1) {
  HeadAnswer answer;
  answer.hidden.resize(p.hidden.size());
  answer.word.resize(p.word.size());
  answer.word_bias.resize(p.word_bias.size());
  answer.cluster.resize(p.cluster.size());
  answer.cluster_bias.resize(p.cluster_bias.size());
  const auto word_row = [&](int64_t v) {
    return HeadRow{&p.word[v * p.dim], p.word_bias[v], &answer.word[v * p.dim], &answer.word_bias[v]};
  };
  const auto cluster_row = [&](int64_t c) {
    return HeadRow{&p.cluster[c * p.dim], p.cluster_bias[c], &answer.cluster[c * p.dim],
                   &answer.cluster_bias[c]};
  };
  for (size_t i = 0; i < p.targets.size(); ++i) {
    const int64_t target = p.targets[i];
    if (target < 0) continue;
    const double* h = &p.hidden[i * p.dim];
    double* h_gradient = &answer.hidden[i * p.dim];
    int64_t c = -1;
    while (target >= p.cluster_offsets[c + 1]) ++c;  // −1: in the shortlist

    std::vector<HeadRow> root;
    for (int64_t k = 0; k < p.shortlist; ++k) root.push_back(word_row(k));
    for (int64_t k = 0; k < p.clusters(); ++k) root.push_back(cluster_row(k));
    answer.loss += add_softmax(root, c < 0 ? target : p.shortlist + c, h, p.dim, scale, h_gradient);
    if (c < 0) continue;

    std::vector<HeadRow> leaves;
    for (int64_t v = p.cluster_offsets[c]; v < p.cluster_offsets[c + 1]; ++v) leaves.push_back(word_row(v));
    answer.loss += add_softmax(leaves, target - p.cluster_offsets[c], h, p.dim, scale, h_gradient);
  }
  return answer;
}

}  // namespace hsm::reference
