#pragma once
#include <cstdint>

#include "kernels/device/element.h"

// Bodies of kernels whose lanes don't meet: each computes what belongs to an index, whatever the order. T is
// what activations are stored in: float, BFloat16 or Half; sums are floats. Rows are those of the embedding
// or of the head's words.
namespace hsm::kernels::device {

/// out[token] = table[rows[token]] · scales[token] (1 when null). An index a value of out, [tokens, width].
template <class T>
struct GatherRows {
  const T* table;
  int64_t width;
  const int32_t* rows;
  const float* scales;
  T* out;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t token = i / width;
    const T value = table[rows[token] * width + i % width];
    out[i] = scales == nullptr ? value : Element<T>::store(Element<T>::load(value) * scales[token]);
  }
};

/// The gradient of GatherRows: out[r] = Σ gradient[token] · scales[token] over the tokens
/// order[starts[r]..starts[r + 1]), in that order. An index a value of out, [rows, width].
template <class T>
struct SumRows {
  const T* gradient;
  int64_t width;
  const int32_t* order;
  const int32_t* starts;
  const float* scales;
  float* out;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t row = i / width;
    const int64_t unit = i % width;
    float sum = 0;
    for (int32_t at = starts[row]; at < starts[row + 1]; ++at) {
      const int64_t token = order[at];
      const float value = Element<T>::load(gradient[token * width + unit]);
      sum += scales == nullptr ? value : value * scales[token];
    }
    out[i] = sum;
  }
};

/// to[places[r]] += from[r]; places are distinct. An index a value of from, [rows, width].
struct AddRows {
  const float* from;
  const int32_t* places;
  int64_t width;
  float* to;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    to[int64_t{places[i / width]} * width + i % width] += from[i];
  }
};

}  // namespace hsm::kernels::device
