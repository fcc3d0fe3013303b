#pragma once
#include <algorithm>
#include <cmath>
#include <string>
#include <vector>

#include "kernels/device/context.h"
#include "reference/head_oracle.h"

namespace hsm::emulation {

namespace device = kernels::device;

/// How far a pass of the head may be from the oracle: rounding of G (`unit`, relative; `least`, absolute), of
/// sums (`sum_unit`) and of what is stored (`store_unit`, dH alone). Each bound is Σ |terms| times the
/// rounding they went through, after the usual analysis of floating-point sums.
struct Rounding {
  double unit;
  double sum_unit;
  double store_unit;
  double least = 0;  ///< absolute rounding of G: half of the smallest number above 0
};

/// Σ |G| · |value| for each gradient, and the largest |logit| as Σ |h| · |u|.
struct HeadMagnitudes {
  reference::HeadAnswer sums;
  double logit = 0;
};

inline HeadMagnitudes head_magnitudes(const reference::HeadProblem& p) {
  HeadMagnitudes m;
  m.sums.hidden.resize(p.hidden.size());
  m.sums.word.resize(p.word.size());
  m.sums.word_bias.resize(p.word_bias.size());
  m.sums.cluster.resize(p.cluster.size());
  m.sums.cluster_bias.resize(p.cluster_bias.size());
  struct Row {
    const double* weights;
    double bias;
    double* sums;
    double* bias_sum;
  };
  const auto add = [&](const std::vector<Row>& rows, size_t hit, int64_t token) {
    const double* h = &p.hidden[static_cast<size_t>(token * p.dim)];
    std::vector<double> z;
    for (const Row& row : rows) {
      double logit = row.bias;
      double size = std::abs(row.bias);
      for (int64_t d = 0; d < p.dim; ++d) {
        logit += h[d] * row.weights[d];
        size += std::abs(h[d] * row.weights[d]);
      }
      z.push_back(logit);
      m.logit = std::max(m.logit, size);
    }
    const double lse = reference::log_sum_exp(z);
    for (size_t j = 0; j < rows.size(); ++j) {
      const double g = std::exp(z[j] - lse) + (j == hit ? 1 : 0);  // not less: p and onehot round apart
      *rows[j].bias_sum += g;
      for (int64_t d = 0; d < p.dim; ++d) {
        rows[j].sums[d] += g * std::abs(h[d]);
        m.sums.hidden[static_cast<size_t>(token * p.dim + d)] += g * std::abs(rows[j].weights[d]);
      }
    }
  };
  for (size_t i = 0; i < p.targets.size(); ++i) {
    const int64_t target = p.targets[i];
    if (target < 0) continue;
    int64_t c = -1;
    while (target >= p.cluster_offsets[static_cast<size_t>(c + 1)]) ++c;
    const auto word_row = [&](int64_t v) {
      return Row{&p.word[static_cast<size_t>(v * p.dim)], p.word_bias[static_cast<size_t>(v)],
                 &m.sums.word[static_cast<size_t>(v * p.dim)], &m.sums.word_bias[static_cast<size_t>(v)]};
    };
    std::vector<Row> rows;
    for (int64_t k = 0; k < p.shortlist; ++k) rows.push_back(word_row(k));
    for (int64_t k = 0; k < p.clusters(); ++k) {
      rows.push_back({&p.cluster[static_cast<size_t>(k * p.dim)], p.cluster_bias[static_cast<size_t>(k)],
                      &m.sums.cluster[static_cast<size_t>(k * p.dim)],
                      &m.sums.cluster_bias[static_cast<size_t>(k)]});
    }
    add(rows, static_cast<size_t>(c < 0 ? target : p.shortlist + c), static_cast<int64_t>(i));
    if (c < 0) continue;
    rows.clear();
    const auto cluster = static_cast<size_t>(c);
    for (int64_t v = p.cluster_offsets[cluster]; v < p.cluster_offsets[cluster + 1]; ++v)
      rows.push_back(word_row(v));
    add(rows, static_cast<size_t>(target - p.cluster_offsets[cluster]), static_cast<int64_t>(i));
  }
  return m;
}

/// Checks every gradient and the loss; returns the first that is too far off, or nothing.
inline std::string compare_head(const reference::HeadProblem& p, const reference::HeadAnswer& got,
                                double scale, const Rounding& rounding) {
  const reference::HeadAnswer want = reference::head_oracle(p, scale);
  const HeadMagnitudes m = head_magnitudes(p);
  const auto terms =
      static_cast<double>(p.words + p.clusters() + static_cast<int64_t>(p.targets.size()) + p.dim);
  // Relative error of an element of p: of its logit and of the log-sum it is divided by.
  const double probability = 2 * rounding.sum_unit * (static_cast<double>(p.dim) * m.logit + terms + 16);
  double largest = 0;
  for (const auto* values : {&p.hidden, &p.word, &p.cluster}) {
    for (const double value : *values) largest = std::max(largest, std::abs(value));
  }
  std::string problem;
  const auto check = [&](const char* name, const std::vector<double>& a, const std::vector<double>& b,
                         const std::vector<double>& size, double store) {
    if (a.size() != b.size()) {
      problem = std::string(name) + ": " + std::to_string(a.size()) + " values";
      return;
    }
    for (size_t i = 0; i < a.size() && problem.empty(); ++i) {
      const double bound =
          std::abs(scale) * (size[i] * (rounding.unit + probability + rounding.sum_unit * terms) +
                             rounding.least * terms * largest) +
          store * std::abs(b[i]) + 1e-30;
      if (!(std::abs(a[i] - b[i]) <= bound)) {
        problem = std::string(name) + "[" + std::to_string(i) + "] is " + std::to_string(a[i]) +
                  ", expected " + std::to_string(b[i]) + " within " + std::to_string(bound);
      }
    }
  };
  const double loss_bound = rounding.sum_unit * (static_cast<double>(p.dim) * m.logit + terms + 16) *
                            (1 + static_cast<double>(p.targets.size()));
  if (!(std::abs(got.loss - want.loss) <= loss_bound)) {
    return "loss is " + std::to_string(got.loss) + ", expected " + std::to_string(want.loss);
  }
  check("hidden", got.hidden, want.hidden, m.sums.hidden, rounding.store_unit);
  check("word", got.word, want.word, m.sums.word, 0);
  check("word_bias", got.word_bias, want.word_bias, m.sums.word_bias, 0);
  check("cluster", got.cluster, want.cluster, m.sums.cluster, 0);
  check("cluster_bias", got.cluster_bias, want.cluster_bias, m.sums.cluster_bias, 0);
  return problem;
}

template <class P>
Rounding rounding_of();
template <>
inline Rounding rounding_of<device::Fma<double>>() {
  return {0x1p-52, 0x1p-52, 0x1p-52};
}
template <>
inline Rounding rounding_of<device::Fma<float>>() {
  return {0x1p-23, 0x1p-23, 0x1p-23};
}
template <>
inline Rounding rounding_of<device::Tf32>() {
  return {0x1p-11, 0x1p-23, 0x1p-23};
}
template <>
inline Rounding rounding_of<device::Bf16>() {
  return {0x1p-8, 0x1p-23, 0x1p-8};
}
template <>
inline Rounding rounding_of<device::Fp16>() {
  return {0x1p-11, 0x1p-23, 0x1p-10, 0x1p-25};
}

}  // namespace hsm::emulation
