#include "model/model_shape.h"

#include <array>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/random.h"

namespace hsm {
namespace {

constexpr std::array<std::pair<Cell, const char*>, 4> kCells{{
    {Cell::lstm, "lstm"},
    {Cell::gru, "gru"},
    {Cell::rnn_tanh, "rnn_tanh"},
    {Cell::rnn_relu, "rnn_relu"},
}};

// With this bound, and ids of 32 bits, no product of sizes leaves 64 bits.
constexpr int64_t kLargestWidth = int64_t{1} << 20;

void check_width(int64_t width, const std::string& key) {
  if (width >= 1 && width <= kLargestWidth) return;
  throw UsageError(key + ": " + std::to_string(width) + " given, expected 1 to " +
                   std::to_string(kLargestWidth));
}

int64_t element_count(const TensorSpec& spec) {
  int64_t count = 1;
  for (const int64_t extent : spec.shape) count *= extent;
  return count;
}

}  // namespace

int64_t ModelShape::state_size() const {
  int64_t size = 0;
  for (const int64_t width : hidden) size += layer_state(width);
  return size;
}

int64_t ModelShape::parameter_count() const {
  int64_t count = 0;
  for (const TensorSpec& spec : parameter_specs(*this)) count += element_count(spec);
  return count;
}

Cell parse_cell(const std::string& name) {
  std::string known;
  for (const auto& [cell, cell_text] : kCells) {
    if (name == cell_text) return cell;
    known += known.empty() ? cell_text : std::string(", ") + cell_text;
  }
  throw UsageError("model.cell: \"" + name + "\" given, expected one of " + known);
}

const char* cell_name(Cell cell) {
  for (const auto& [known, name] : kCells) {
    if (known == cell) return name;
  }
  return "";
}

ModelShape make_shape(const ModelConfig& config, int64_t words, int64_t clusters) {
  ModelShape shape;
  shape.cell = parse_cell(config.cell);
  check_width(config.layers, "model.layers");
  if (config.hidden.size() != 1 && std::cmp_not_equal(config.hidden.size(), config.layers)) {
    throw UsageError("model.hidden: " + std::to_string(config.hidden.size()) +
                     " sizes given, expected one, or " + std::to_string(config.layers) + " (model.layers)");
  }
  for (const int64_t width : config.hidden) check_width(width, "model.hidden");
  shape.hidden = config.hidden;
  shape.hidden.resize(static_cast<size_t>(config.layers), config.hidden.front());
  shape.embedding = config.embedding == 0 ? shape.hidden.front() : config.embedding;
  check_width(shape.embedding, "model.embedding");
  shape.tied = config.tie_embeddings;

  if (words < 2 || words > std::numeric_limits<int32_t>::max()) {
    throw DataError("a vocabulary of " + std::to_string(words) + " words can't be modelled, expected 2 to " +
                    std::to_string(std::numeric_limits<int32_t>::max()));
  }
  if (clusters < 0 || clusters > words) {
    throw DataError(std::to_string(clusters) + " word classes given for " + std::to_string(words) +
                    " words, expected 0 to as many as words");
  }
  shape.words = words;
  shape.clusters = clusters;
  return shape;
}

std::vector<TensorSpec> parameter_specs(const ModelShape& shape) {
  std::vector<TensorSpec> specs;
  if (!shape.tied) specs.push_back({"embedding.weight", {shape.words, shape.embedding}});
  for (size_t layer = 0; layer < shape.hidden.size(); ++layer) {
    const std::string suffix = "_l" + std::to_string(layer);
    const int64_t hidden = shape.hidden[layer];
    const int64_t rows = shape.gates() * hidden;
    specs.push_back({"rnn.weight_ih" + suffix, {rows, shape.layer_input(layer)}});
    specs.push_back({"rnn.weight_hh" + suffix, {rows, hidden}});
    specs.push_back({"rnn.bias_ih" + suffix, {rows}});
    specs.push_back({"rnn.bias_hh" + suffix, {rows}});
  }
  if (shape.has_projection()) specs.push_back({"projection.weight", {shape.head_dim(), shape.hidden.back()}});
  specs.push_back({"head.word.weight", {shape.words, shape.head_dim()}});
  specs.push_back({"head.word.bias", {shape.words}});
  specs.push_back({"head.cluster.weight", {shape.clusters, shape.head_dim()}});
  specs.push_back({"head.cluster.bias", {shape.clusters}});
  return specs;
}

double initial_range(const ModelConfig& config, std::string_view name) {
  const bool recurrent = name.starts_with("rnn.");
  return recurrent && config.recurrent_init_range > 0 ? config.recurrent_init_range : config.init_range;
}

void draw_initial_values(size_t index, double range, uint64_t seed, std::span<float> values) {
  const CounterRandom random(seed, Purpose::initialization);
  for (size_t at = 0; at < values.size(); ++at) {
    values[at] = static_cast<float>((2 * random.uniform(index, at) - 1) * range);
  }
}

}  // namespace hsm
