#pragma once
#include <filesystem>
#include <map>
#include <memory>
#include <string>

#include "config/config.h"
#include "model/inference_model.h"
#include "model/safetensors.h"
#include "text/vocabulary.h"

namespace hsm {

/// A model directory, opened: weights mapped, tables checked against each other.
struct SavedModel {
  std::filesystem::path directory;
  Config config;  ///< the resolved configuration of its training
  Vocabulary vocabulary;
  HeadLayout layout;
  ModelShape shape;
  SafetensorsFile weights;

  [[nodiscard]] WeightView weight_view() const;
};

/// Opens `directory`. DataError naming the file when one is missing or malformed, or when configuration,
/// vocabulary, classes and weights don't belong together. The weights themselves are not read:
/// verify_checksum(model.weights) does that.
SavedModel open_model(const std::filesystem::path& directory);

/// Writes model.safetensors atomically: parameters, tables of the layout, hashes, and `metadata` for people.
void save_weights(const std::filesystem::path& directory, const ModelShape& shape, const HeadLayout& layout,
                  const Vocabulary& vocabulary, const WeightView& weights,
                  const std::map<std::string, std::string>& metadata);

}  // namespace hsm
