#pragma once
#include <cmath>
#include <string>
#include <vector>

namespace hsm::reference {

/// torch.optim's dense updates of one tensor, in double, as its documentation writes them.
struct DenseOptimizer {
  std::string name;  ///< sgd | momentum | adagrad | adam | adamw
  double momentum = 0.9;
  double beta1 = 0.9;
  double beta2 = 0.999;
  double epsilon = 1e-8;
  double initial_accumulator = 0;
  double weight_decay = 0;

  std::vector<double> value;
  std::vector<double> buffer{};   ///< momentum_buffer; exp_avg
  std::vector<double> squares{};  ///< sum; exp_avg_sq
  int step_count = 0;

  void step(const std::vector<double>& gradient, double rate) {
    if (step_count == 0) {
      buffer.assign(value.size(), 0);
      squares.assign(value.size(), name == "adagrad" ? initial_accumulator : 0);
    }
    ++step_count;
    for (size_t i = 0; i < value.size(); ++i) {
      double g = gradient[i];
      if (name == "adamw") {
        value[i] -= rate * weight_decay * value[i];
      } else {
        g += weight_decay * value[i];
      }
      if (name == "sgd") {
        value[i] -= rate * g;
      } else if (name == "momentum") {
        buffer[i] = step_count == 1 ? g : momentum * buffer[i] + g;
        value[i] -= rate * buffer[i];
      } else if (name == "adagrad") {
        squares[i] += g * g;
        value[i] -= rate * g / (std::sqrt(squares[i]) + epsilon);
      } else {
        buffer[i] = beta1 * buffer[i] + (1 - beta1) * g;
        squares[i] = beta2 * squares[i] + (1 - beta2) * g * g;
        const double mean = buffer[i] / (1 - std::pow(beta1, step_count));
        const double variance = squares[i] / (1 - std::pow(beta2, step_count));
        value[i] -= rate * mean / (std::sqrt(variance) + epsilon);
      }
    }
  }
};

}  // namespace hsm::reference
