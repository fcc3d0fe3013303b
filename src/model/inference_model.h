#pragma once
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "classes/word_classes.h"
#include "model/model_shape.h"

namespace hsm {

/// Where the weights of a model lie: one pointer for each of parameter_specs(), in its order. Not owned.
struct WeightView {
  std::vector<const float*> tensors;
};

/// A model ready for scoring and decoding on the CPU: immutable, torch-free, safe to use from many threads.
///
/// Every result for a row depends on that row's inputs alone, to the bit: not on the other rows, on the
/// number of rows, on how steps are grouped into calls, or on threads. Recurrent and root weights are
/// packed once (owned); embeddings and leaf rows are read where they lie (a mapped file, as a rule).
class InferenceModel {
 public:
  /// `weights` must outlive the object.
  InferenceModel(ModelShape shape, HeadLayout layout, const WeightView& weights);
  ~InferenceModel();
  InferenceModel(InferenceModel&&) noexcept;
  InferenceModel& operator=(InferenceModel&&) noexcept;

  [[nodiscard]] const ModelShape& shape() const noexcept;
  [[nodiscard]] const HeadLayout& layout() const noexcept;
  /// Bytes of packed copies this object owns.
  [[nodiscard]] uint64_t owned_bytes() const noexcept;

  /// Runs `steps` steps of `streams` independent streams. `tokens` are public ids, time-major
  /// [steps, streams]; `state` [streams, state_size] is read and replaced; `output` [steps, streams,
  /// head_dim] gets what the head reads (after the projection). `scratch`: run_scratch(steps, streams)
  /// floats.
  /// Allocates nothing. DataError for a token that is not in the vocabulary.
  void run(std::span<const int32_t> tokens, int64_t steps, int64_t streams, float* state, float* output,
           float* scratch) const;
  [[nodiscard]] int64_t run_scratch(int64_t steps, int64_t streams) const noexcept;

  /// What run() consists of, with the same bits, for callers whose layers work on different steps at the same
  /// time. First [tokens, embedding] of the tokens; then, layer by layer, from `input` [steps, streams,
  /// layer_input] to `output` [steps, streams, hidden], which may be the same memory, with that layer's part
  /// of `state` replaced and run_scratch(steps, streams) floats of `scratch`; at last, where the shape
  /// has_projection(), from the last layer's output to what the head reads.
  void embed(std::span<const int32_t> tokens, float* output) const;
  void run_layer(size_t layer, const float* input, int64_t steps, int64_t streams, float* state,
                 float* output, float* scratch) const;
  void project(const float* input, int64_t rows, float* output) const;

  /// The first layer's input products, [tokens, product_width], biases included: each is a function of its
  /// token alone, so a caller may keep those of frequent words. `scratch`: embedding floats a token.
  void input_products(std::span<const int32_t> tokens, float* products, float* scratch) const;
  [[nodiscard]] int64_t product_width() const noexcept;
  /// run(), and run_layer() of the first layer, from input products [steps, streams, product_width], which
  /// they use up. Same bits, same scratch.
  void run_products(float* products, int64_t steps, int64_t streams, float* state, float* output,
                    float* scratch) const;
  void run_first_layer(float* products, int64_t steps, int64_t streams, float* state, float* output,
                       float* scratch) const;

  /// Log-probabilities at the root, [rows, shortlist + clusters], of head inputs [rows, head_dim].
  void root_log_probs(const float* head_input, int64_t rows, float* log_probs) const;
  /// Log-probabilities within `cluster`, each ≤ 0, [rows, size of the cluster], of head inputs given by
  /// pointer (so that rows of different hypotheses need no copying).
  void leaf_log_probs(int64_t cluster, std::span<const float* const> head_inputs, float* log_probs) const;

 private:
  struct Packed;
  std::unique_ptr<Packed> packed_;
};

}  // namespace hsm
