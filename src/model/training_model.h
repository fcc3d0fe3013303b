#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "base/thread_pool.h"
#include "classes/word_classes.h"
#include "config/config.h"
#include "kernels/leaf_factors.h"
#include "kernels/row_gradients.h"
#include "model/inference_model.h"
#include "model/micro_batch.h"
#include "model/model_shape.h"
#include "model/recurrent_stack.h"
#include "text/batches.h"

namespace hsm {

/// A parameter and, after TrainingModel::step, its gradient: dense, or sparse by rows. For head.word.weight
/// and head.word.bias the rows are head rows; both share one RowGradients whose rows end in the bias.
struct Parameter {
  std::string name;
  std::vector<int64_t> shape;
  std::span<float> value;
  std::span<float> gradient;                           ///< empty when sparse
  const kernels::RowGradients<float>* rows = nullptr;  ///< null when dense
  int64_t row_offset = 0;  ///< first of this parameter's values in a row of `rows`
  /// Of head.word.weight: gradients by weights and biases of more rows, unless null (see leave_factors).
  kernels::LeafFactors<float>* factors = nullptr;
};

/// Where a training step stands: keys of the random numbers.
struct StepPosition {
  int64_t epoch = 0;   ///< from 0
  int64_t window = 0;  ///< within the epoch, from 0
  int64_t step = 0;    ///< since the start of training, from 0
};

/// The model while it learns: parameters, forward and backward pass on the CPU.
///
/// The head computes its loss and gradients in one pass, so backward begins where forward ends: no graph is
/// kept.
class TrainingModel {
 public:
  /// Parameters drawn uniformly from ±initial_range(), keyed by the seed. `make_stack` chooses the recurrent
  /// layers.
  TrainingModel(const ModelConfig& config, ModelShape shape, HeadLayout layout, uint64_t seed,
                ThreadPool& pool, const RecurrentStackFactory& make_stack = make_recurrent_stack);
  ~TrainingModel();

  [[nodiscard]] const ModelShape& shape() const noexcept;
  [[nodiscard]] const HeadLayout& layout() const noexcept;
  /// In the order of parameter_specs().
  [[nodiscard]] std::span<Parameter> parameters() noexcept;
  [[nodiscard]] WeightView weight_view() const;

  /// Recurrent states carried between windows, [streams, state_size].
  [[nodiscard]] std::span<float> carried_state(int64_t streams);

  /// How the steps to come are cut; whole at first.
  void cut_steps(const StepPieces& pieces);

  /// Lets step() leave gradients of the head's words as factors where that pays, for an optimiser that can
  /// take them. Not with tied embeddings nor in steps cut in pieces, which add gradients up.
  void leave_factors();

  /// One window: the sum of its losses (natural logarithm), and the gradients of `scale` times that sum.
  double step(const Batch& batch, const StepPosition& position, float scale);

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace hsm
