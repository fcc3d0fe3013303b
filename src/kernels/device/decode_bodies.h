#pragma once
#include <cmath>
#include <cstdint>

#include "kernels/cell.h"
#include "kernels/device/log_sum.h"
#include "kernels/device/ranked.h"

// Bodies of decoding's kernels whose lanes don't meet; see row_bodies.h.
namespace hsm::kernels::device {

/// One step of a recurrent layer from its products (see kernels/cell.h), in place. An index a unit of a row:
/// of rows · width.
struct CellStep {
  Cell cell;
  int64_t width;
  const float* input;  ///< [rows, gates · width]: input weights · x + bias
  const float* state;  ///< [rows, gates · width]: recurrent weights · h + bias
  const int32_t* fed;  ///< [rows]: 0: the row keeps its state
  float* h;            ///< [rows, width]
  float* c;            ///< [rows, width], the LSTM's

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / width;
    if (fed[row] == 0) return;
    const int64_t at = row * gate_count_of(cell) * width + i % width;
    if (cell == Cell::lstm) {
      const float in = sigmoid(input[at] + state[at]);
      const float forget = sigmoid(input[at + width] + state[at + width]);
      const float candidate = tanhf(input[at + 2 * width] + state[at + 2 * width]);
      const float out = sigmoid(input[at + 3 * width] + state[at + 3 * width]);
      c[i] = forget * c[i] + in * candidate;
      h[i] = out * tanhf(c[i]);
    } else if (cell == Cell::gru) {
      const float reset = sigmoid(input[at] + state[at]);
      const float keep = sigmoid(input[at + width] + state[at + width]);
      const float candidate = tanhf(input[at + 2 * width] + reset * state[at + 2 * width]);
      h[i] = (1 - keep) * candidate + keep * h[i];
    } else {
      const float sum = input[at] + state[at];
      h[i] = cell == Cell::rnn_tanh ? tanhf(sum) : sum < 0 ? 0.0F : sum;  // what is not a number stays
    }
  }

 private:
  HSM_HOST_DEVICE static int64_t gate_count_of(Cell cell) {
    return cell == Cell::lstm ? 4 : cell == Cell::gru ? 3 : 1;
  }
  HSM_HOST_DEVICE static float sigmoid(float x) { return 1 / (1 + expf(-x)); }
};

/// log P of a given word after a row, from the root's logits and its expanded cluster. An index a question.
struct WordScore {
  int64_t root;                    ///< R
  int64_t splits;                  ///< parts of a row's log-sum
  const float* root_logit;         ///< [rows, R]
  const LogSum<float>* root_part;  ///< [rows, splits]
  const int32_t* row;              ///< of each question
  const int32_t* column;           ///< at the root, of the word or its cluster
  const int32_t* leaf;             ///< of the cluster; negative: the column is the word
  int64_t leaf_stride;
  const float* leaf_logit;         ///< [questions, leaf_stride]
  const LogSum<float>* leaf_part;  ///< [questions]
  double* log_prob;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    LogSum<float> total = no_terms<float>();
    for (int64_t s = 0; s < splits; ++s) total = join(total, root_part[row[i] * splits + s]);
    double sum = score(root_logit[row[i] * root + column[i]], total);
    if (leaf[i] >= 0) sum += score(leaf_logit[i * leaf_stride + leaf[i]], leaf_part[i]);
    log_prob[i] = sum;
  }

 private:
  HSM_HOST_DEVICE static double score(float logit, const LogSum<float>& total) {
    return static_cast<double>(smaller(logit - value_of(total), 0.0F));
  }
};

}  // namespace hsm::kernels::device
