#pragma once
#include <cstdint>

#include "kernels/device/head_plan.h"
#include "kernels/device/update_bodies.h"

// Read by the CUDA compiler, too, and so C++17.
namespace hsm::kernels::device {

/// What activations, and the weights that products read, are stored in.
enum class ElementType { f32, bf16, f16 };

/// One pass of the head, forward and backward; all pointers into the device's memory. The gradient of the
/// word matrix is compact: the rows of the shortlist, then those of the clusters that are hit, without
/// clusters of one word.
struct HeadPass {
  HeadSizes sizes;
  const void* hidden = nullptr;   ///< [N, D]
  const void* word = nullptr;     ///< [V, D]
  const void* cluster = nullptr;  ///< [C, D]
  const float* word_bias = nullptr;
  const float* cluster_bias = nullptr;
  const int64_t* cluster_offsets = nullptr;  ///< [C + 1]
  const int32_t* cluster_of_row = nullptr;   ///< [V], negative for the shortlist
  const int32_t* targets = nullptr;          ///< [N], rows; negative: no loss
  const float* scale = nullptr;              ///< gradients are those of scale · Σ losses
  void* scratch = nullptr;                   ///< head_scratch_bytes()

  float* loss = nullptr;                   ///< Σ of the pass
  void* hidden_gradient = nullptr;         ///< [N, D]
  float* word_gradient = nullptr;          ///< [shortlist + most_hit_rows, D]
  float* word_bias_gradient = nullptr;     ///< [shortlist + most_hit_rows]
  float* cluster_gradient = nullptr;       ///< [C, D]
  float* cluster_bias_gradient = nullptr;  ///< [C]
};

/// Where a mask of dropout stands; see kernels/dropout.h.
struct MaskPlace {
  uint64_t seed = 0;
  uint32_t purpose = 0;  ///< Purpose
  int64_t step = 0;
  int64_t layer = 0;
  int64_t times = 0;
  int64_t streams = 0;
  int64_t first_stream = 0;
  int64_t units = 0;
  double probability = 0;
  bool locked = false;
};

/// Outputs that a penalty is on, and their gradient, that of the penalty to be added: see penalty_bodies.h.
struct PenaltyPlace {
  const int32_t* targets = nullptr;  ///< [steps, streams], negative for none
  int64_t steps = 0;
  int64_t streams = 0;
  int64_t units = 0;
  float factor = 0;
  const void* output = nullptr;  ///< [steps, streams, units]
  void* gradient = nullptr;      ///< likewise
};

/// A gradient to take the norm of.
struct GradientView {
  const float* values = nullptr;
  int64_t count = 0;
};

/// The kernels that a training step launches, all on one stream and none waited for. Pointers are into the
/// device's memory, void ones to elements of the type that the object was made for.
class DeviceKernels {
 public:
  virtual ~DeviceKernels() = default;

  [[nodiscard]] virtual int64_t head_scratch_bytes(const HeadSizes& sizes) const = 0;
  virtual void head(const HeadPass& pass) = 0;
  /// The forward pass alone, which takes no gradients' pointers: for each token the log-probability of its
  /// target's column at the root, and of the target within its cluster; 0 where there is nothing to score.
  virtual void head_scores(const HeadPass& pass, float* root, float* leaf) = 0;

  /// GatherRows, SumRows and AddRows of row_bodies.h.
  virtual void gather_rows(const void* table, int64_t width, const int32_t* rows, const float* scales,
                           int64_t tokens, void* out) = 0;
  virtual void sum_rows(const void* gradient, int64_t width, const int32_t* order, const int32_t* starts,
                        const float* scales, int64_t rows, float* out) = 0;
  virtual void add_rows(const float* from, const int32_t* places, int64_t width, int64_t rows, float* to) = 0;
  virtual void dropout(const MaskPlace& place, void* values) = 0;
  virtual void add_activation_penalty(const PenaltyPlace& place) = 0;
  virtual void add_temporal_penalty(const PenaltyPlace& place) = 0;

  /// squares = Σ of the gradient's squares; `scratch` holds kNormScratch doubles.
  static constexpr int64_t kNormScratch = 16384 + 128;
  virtual void sum_of_squares(const GradientView& gradient, double* squares, double* scratch) = 0;
  virtual void clip_norm(const ClipNorm& clip) = 0;
  /// UpdateValues of update_bodies.h for `count` indices; its copy is of elements.
  virtual void update(const UpdateValues<void>& values, int64_t count) = 0;
  virtual void average(const AverageValues& values, int64_t count) = 0;
};

}  // namespace hsm::kernels::device
