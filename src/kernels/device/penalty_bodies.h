#pragma once
#include <cstdint>

#include "kernels/device/element.h"

// Gradients of the penalties on activations (model/activation_penalty.h), as bodies for an index (see
// row_bodies.h). Outputs h and their gradient are [steps, streams, units], of elements; an index a value.
namespace hsm::kernels::device {

/// gradient += factor · h where there is a target.
template <class T>
struct AddActivationPenalty {
  const int32_t* targets;  ///< [steps, streams], negative for none
  int64_t units;
  float factor;
  const T* output;
  T* gradient;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    if (targets[i / units] < 0) return;
    gradient[i] = Element<T>::store(fmaf(factor, Element<T>::load(output[i]), Element<T>::load(gradient[i])));
  }
};

/// gradient += factor · (h_t − h_(t−1)) and factor · (h_t − h_(t+1)), each where both have a target.
template <class T>
struct AddTemporalPenalty {
  const int32_t* targets;  ///< [steps, streams], negative for none
  int64_t steps;
  int64_t streams;
  int64_t units;
  float factor;
  const T* output;
  T* gradient;

  HSM_HOST_DEVICE void operator()(int64_t i) const {
    const int64_t token = i / units;
    if (targets[token] < 0) return;
    const float value = Element<T>::load(output[i]);
    float sum = 0;
    if (token >= streams && targets[token - streams] >= 0) {
      sum += value - Element<T>::load(output[i - streams * units]);
    }
    if (token + streams < steps * streams && targets[token + streams] >= 0) {
      sum += value - Element<T>::load(output[i + streams * units]);
    }
    gradient[i] = Element<T>::store(fmaf(factor, sum, Element<T>::load(gradient[i])));
  }
};

}  // namespace hsm::kernels::device
