#pragma once
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "config/config.h"
#include "kernels/cell.h"

namespace hsm {

using kernels::Cell;

/// Sizes of a language model: embedding → recurrent layers → (projection) → head.
struct ModelShape {
  Cell cell = Cell::lstm;
  int64_t words = 0;
  int64_t clusters = 0;
  int64_t embedding = 0;
  std::vector<int64_t> hidden;  ///< one a layer
  bool tied = false;

  /// Gates a cell computes: 4 (i, f, g, o), 3 (r, z, n) or 1.
  [[nodiscard]] int64_t gates() const { return kernels::gate_count(cell); }
  [[nodiscard]] int64_t layer_input(size_t layer) const { return layer == 0 ? embedding : hidden[layer - 1]; }
  /// Width of the head: the embedding's when tied, else the last layer's.
  [[nodiscard]] int64_t head_dim() const { return tied ? embedding : hidden.back(); }
  /// A linear layer without bias between the last layer and the head.
  [[nodiscard]] bool has_projection() const { return head_dim() != hidden.back(); }
  /// Floats of a layer's part of the state: h, then c for an LSTM.
  [[nodiscard]] int64_t layer_state(int64_t width) const { return kernels::state_width(cell, width); }
  /// Floats of the recurrent state of one stream: layer by layer h, then c for an LSTM.
  [[nodiscard]] int64_t state_size() const;
  [[nodiscard]] int64_t parameter_count() const;
};

/// UsageError naming the key model.cell and the known names.
Cell parse_cell(const std::string& name);
const char* cell_name(Cell cell);

/// `words` and `clusters` come from the vocabulary and the classes. One hidden size stands for all layers.
/// UsageError naming the key for a size out of range, DataError for a vocabulary or classes that no model can
/// have.
ModelShape make_shape(const ModelConfig& config, int64_t words, int64_t clusters);

/// A parameter's name in model.safetensors (torch's names) and its shape.
struct TensorSpec {
  std::string name;
  std::vector<int64_t> shape;
};

/// All parameters in a fixed order: embedding.weight (unless tied), rnn.weight_ih_l0, rnn.weight_hh_l0,
/// rnn.bias_ih_l0, rnn.bias_hh_l0, …, projection.weight, head.word.weight, head.word.bias,
/// head.cluster.weight, head.cluster.bias. Rows of embedding.weight follow the head's rows, not the ids.
std::vector<TensorSpec> parameter_specs(const ModelShape& shape);

/// Where the initial values of the parameter of that name lie: within ± this.
double initial_range(const ModelConfig& config, std::string_view name);

/// What parameter number `index` of parameter_specs() starts training with: uniform in ±range, keyed by the
/// seed.
void draw_initial_values(size_t index, double range, uint64_t seed, std::span<float> values);

}  // namespace hsm
