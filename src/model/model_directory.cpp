#include "model/model_directory.h"

#include <array>
#include <set>
#include <utility>

#include "base/error.h"
#include "classes/class_file.h"
#include "config/config_file.h"

namespace hsm {
namespace {

constexpr const char* kWeightsFile = "model.safetensors";
constexpr const char* kConfigFile = "config.json";
constexpr const char* kVocabularyFile = "vocabulary.txt";
constexpr const char* kClassesFile = "classes.txt";

constexpr const char* kRowOfWord = "head.row_of_word";
constexpr const char* kClusterOffsets = "head.cluster_offsets";

// Keys of the metadata in model.safetensors.
constexpr const char* kFormat = "hsm_format";
constexpr const char* kFormatVersion = "1";
constexpr const char* kCell = "cell";
constexpr const char* kVocabularyHash = "vocabulary_hash";
constexpr const char* kLayoutHash = "layout_hash";

/// Complains about a folder without model.safetensors in the words that help most.
[[noreturn]] void fail_without_weights(const std::filesystem::path& directory) {
  std::error_code error;
  const std::string name = directory.string();
  if (!std::filesystem::exists(directory, error)) {
    throw DataError(name + ": no such folder, expected a model directory as `hsm train` makes it");
  }
  if (!std::filesystem::is_directory(directory, error)) {
    throw DataError(name + ": is a file, expected a model directory as `hsm train` makes it");
  }
  if (std::filesystem::exists(directory / "checkpoints", error) ||
      std::filesystem::exists(directory / kConfigFile, error)) {
    throw DataError(name + ": holds a training run that has not saved a model yet (" + kWeightsFile +
                    " comes with its first validation, or else at the end); go on with `hsm train --resume`");
  }
  throw DataError(name + ": not a model directory: it holds no " + kWeightsFile);
}

/// What is wrong in a saved configuration is wrong data: the user did not write it for this command.
template <class Action>
auto as_data_error(Action&& action) {
  try {
    return action();
  } catch (const UsageError& error) {
    throw DataError(error.what());
  }
}

const std::string& metadata_value(const SafetensorsFile& weights, const char* key) {
  const auto found = weights.metadata().find(key);
  if (found == weights.metadata().end()) {
    throw DataError(weights.path().string() + ": not a model of this program: its metadata have no \"" + key +
                    "\"");
  }
  return found->second;
}

void check_format(const SafetensorsFile& weights) {
  const std::string& version = metadata_value(weights, kFormat);
  if (version == kFormatVersion) return;
  throw DataError(weights.path().string() + ": format version " + version + ", this program reads version " +
                  kFormatVersion);
}

void check_vocabulary(const SafetensorsFile& weights, const Vocabulary& vocabulary,
                      const std::filesystem::path& path) {
  const std::string& expected = metadata_value(weights, kVocabularyHash);
  if (vocabulary.hash() == expected) return;
  throw DataError(path.string() + ": not the vocabulary that " + weights.path().string() +
                  " was trained with (hash " + vocabulary.hash() + ", expected " + expected +
                  "): was it edited, or taken from another model?");
}

std::span<const int64_t> read_table(const SafetensorsFile& weights, const char* name, int64_t length) {
  const std::array<int64_t, 1> shape{length};
  const TensorRef& tensor = weights.expect(name, DType::i64, shape);
  return {static_cast<const int64_t*>(tensor.data), static_cast<size_t>(length)};
}

HeadLayout read_layout(const SafetensorsFile& weights, const Vocabulary& vocabulary) {
  const std::span<const int64_t> rows = read_table(weights, kRowOfWord, vocabulary.size());
  const TensorRef* offsets = weights.find(kClusterOffsets);  // the number of classes stands nowhere else
  const int64_t offset_count = offsets != nullptr ? offsets->count() : 0;
  const std::span<const int64_t> cluster_offsets = read_table(weights, kClusterOffsets, offset_count);
  HeadLayout layout;
  try {
    layout = make_layout(rows, cluster_offsets);
  } catch (const DataError& error) {
    throw DataError(weights.path().string() + ": " + error.what());
  }
  const std::string& expected = metadata_value(weights, kLayoutHash);
  if (layout.hash() != expected) {
    throw DataError(weights.path().string() + ": damaged: its tables of classes have the hash " +
                    layout.hash() + ", expected " + expected);
  }
  return layout;
}

/// The configuration and the weights must mean the same model: shapes, cell, and nothing left over.
void check_weights(const SafetensorsFile& weights, const ModelShape& shape) {
  const std::string& cell = metadata_value(weights, kCell);
  if (cell != cell_name(shape.cell)) {
    throw DataError(weights.path().string() + ": holds weights of cell " + cell + ", but " + kConfigFile +
                    " says " + cell_name(shape.cell));
  }
  std::set<std::string> known{kRowOfWord, kClusterOffsets};
  for (const TensorSpec& spec : parameter_specs(shape)) {
    weights.expect(spec.name, DType::f32, spec.shape);
    known.insert(spec.name);
  }
  for (const TensorRef& tensor : weights.tensors()) {
    if (known.contains(tensor.name)) continue;
    throw DataError(weights.path().string() + ": tensor \"" + tensor.name +
                    "\" has no place in the model that " + kConfigFile + " describes");
  }
}

}  // namespace

WeightView SavedModel::weight_view() const {
  WeightView view;
  for (const TensorSpec& spec : parameter_specs(shape)) {
    view.tensors.push_back(static_cast<const float*>(weights.expect(spec.name, DType::f32, spec.shape).data));
  }
  return view;
}

SavedModel open_model(const std::filesystem::path& directory) {
  std::error_code ignored;
  if (!std::filesystem::exists(directory / kWeightsFile, ignored)) fail_without_weights(directory);
  Config config = as_data_error([&] { return load_config(directory / kConfigFile); });
  Vocabulary vocabulary = Vocabulary::load(directory / kVocabularyFile);
  SafetensorsFile weights(directory / kWeightsFile);
  check_format(weights);
  check_vocabulary(weights, vocabulary, directory / kVocabularyFile);
  HeadLayout layout = read_layout(weights, vocabulary);
  // classes.txt says again, for people, what the tables say; it must be what was written with them.
  check_saved_classes(directory / kClassesFile, vocabulary, classes_of(layout),
                      weights.path().string() + " was trained with");
  ModelShape shape =
      as_data_error([&] { return make_shape(config.model, vocabulary.size(), layout.clusters()); });
  check_weights(weights, shape);
  return {directory,         std::move(config), std::move(vocabulary),
          std::move(layout), std::move(shape),  std::move(weights)};
}

void save_weights(const std::filesystem::path& directory, const ModelShape& shape, const HeadLayout& layout,
                  const Vocabulary& vocabulary, const WeightView& weights,
                  const std::map<std::string, std::string>& metadata) {
  std::vector<TensorRef> tensors;
  auto data = weights.tensors.begin();
  for (TensorSpec& spec : parameter_specs(shape)) {
    tensors.push_back({std::move(spec.name), DType::f32, std::move(spec.shape), *data++});
  }
  tensors.push_back({kRowOfWord, DType::i64, {layout.words()}, layout.row_of_word.data()});
  tensors.push_back({kClusterOffsets, DType::i64, {layout.clusters() + 1}, layout.cluster_offsets.data()});

  std::map<std::string, std::string> all = metadata;
  all[kFormat] = kFormatVersion;
  all[kCell] = cell_name(shape.cell);
  all[kVocabularyHash] = vocabulary.hash();
  all[kLayoutHash] = layout.hash();
  write_safetensors(directory / kWeightsFile, tensors, std::move(all));
}

}  // namespace hsm
