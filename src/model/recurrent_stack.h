#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <span>

#include "base/thread_pool.h"
#include "kernels/row_groups.h"
#include "model/model_shape.h"

namespace hsm {

/// Dropout between recurrent layers: where the masks of this window stand (see kernels/dropout.h).
struct HiddenDropout {
  double probability = 0;
  bool locked = false;
  uint64_t seed = 0;
  int64_t step = 0;
  int64_t first_stream = 0;  ///< of this pass among the window's streams
};

/// One window through the recurrent layers. Buffers belong to the caller and stay until backward().
struct RecurrentPass {
  int64_t steps = 0;
  int64_t streams = 0;
  const float* input = nullptr;  ///< [steps, streams, embedding], or with `groups` a row for each of them
  const kernels::RowGroups* groups = nullptr;  ///< of the tokens step · streams + stream
  float* state = nullptr;   ///< [streams, state_size] as ModelShape has it; read, then replaced
  float* output = nullptr;  ///< [steps, streams, hidden of the last layer]
  HiddenDropout dropout;
};

/// The recurrent layers while they learn: forward, then backward through time within the window. An
/// implementation reads the weights where they lie, so an optimiser may change them between passes.
class RecurrentStack {
 public:
  virtual ~RecurrentStack() = default;
  virtual void forward(const RecurrentPass& pass) = 0;
  /// After forward(): gradients by the input, in its shape, and by each parameter, in the order
  /// of the constructor's weights; all are overwritten. No gradient flows into the carried state.
  virtual void backward(const float* output_gradient, float* input_gradient,
                        std::span<float* const> weight_gradients) = 0;
};

/// Makes a stack of one of the kinds below.
using RecurrentStackFactory =
    std::function<std::unique_ptr<RecurrentStack>(const ModelShape&, std::span<float* const>, ThreadPool&)>;

/// Layers of kernels/recurrent.h, for the CPU: the same bits for any number of threads. `weights` points to
/// the rnn.* tensors of parameter_specs(), in their order, and must outlive the object.
std::unique_ptr<RecurrentStack> make_recurrent_stack(const ModelShape& shape, std::span<float* const> weights,
                                                     ThreadPool& pool);

/// LibTorch's layers, otherwise the same. Its sums may differ in the last bits with the number of threads.
std::unique_ptr<RecurrentStack> make_torch_recurrent_stack(const ModelShape& shape,
                                                           std::span<float* const> weights, ThreadPool& pool);

}  // namespace hsm
