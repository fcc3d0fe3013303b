#pragma once
#include <cstdint>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include "base/file.h"
#include "base/random.h"
#include "classes/class_file.h"
#include "config/config_file.h"
#include "model/inference_model.h"
#include "model/model_directory.h"
#include "model/sample_models.h"
#include "reference/model_oracle.h"
#include "text/vocabulary.h"

namespace hsm {

inline constexpr int32_t kEnd = 0;
inline constexpr int32_t kUnknown = 1;

/// "</s>", "<unk>", "w2", "w3", …, each with the id that its name says.
inline Vocabulary numbered_vocabulary(int64_t words) {
  std::vector<Vocabulary::Entry> entries{{"</s>", words + 1}, {"<unk>", words}};
  for (int64_t id = 2; id < words; ++id) entries.push_back({"w" + std::to_string(id), words - id});
  return Vocabulary::from_counts(std::move(entries));
}

/// A random model with its oracle and a vocabulary.
struct SmallModel {
  explicit SmallModel(const SampleModel& sample)
      : oracle(sample.make(1)),
        vocabulary(numbered_vocabulary(oracle.shape().words)),
        model(oracle.shape(), oracle.layout(), oracle.weight_view()) {}

  ModelOracle oracle;
  Vocabulary vocabulary;
  InferenceModel model;

  /// Ids of a text whose sentences have these numbers of words besides `</s>`, `<unk>` among them.
  [[nodiscard]] std::vector<int32_t> random_text(const std::vector<int64_t>& lengths, uint64_t seed) const {
    const CounterRandom random(seed, Purpose::sampling);
    std::vector<int32_t> text;
    for (const int64_t length : lengths) {
      for (int64_t i = 0; i < length; ++i) {
        const uint64_t choices = static_cast<uint64_t>(vocabulary.size()) - 1;
        text.push_back(1 + static_cast<int32_t>(random.bits(0, text.size()) % choices));
      }
      text.push_back(kEnd);
    }
    return text;
  }
};

/// Two layers and a projection, 31 words, clusters of 1, 2, 7 and 16 below a shortlist of 5.
inline SampleModel usual_sample(Cell cell = Cell::lstm) {
  return {"usual", cell, {13, 11}, 9, true, 5, {2, 16, 1, 7}};
}

/// Writes the model as training does; `config` says how its text was read.
inline void save_model(const SmallModel& small, const std::filesystem::path& directory, Config config = {}) {
  const ModelShape& shape = small.oracle.shape();
  config.model.cell = cell_name(shape.cell);
  config.model.layers = static_cast<int64_t>(shape.hidden.size());
  config.model.hidden = shape.hidden;
  config.model.embedding = shape.embedding;
  config.model.tie_embeddings = shape.tied;
  make_directories(directory);
  write_file(directory / "config.json", dump_config(config));
  small.vocabulary.save(directory / "vocabulary.txt");
  save_classes(directory / "classes.txt", small.vocabulary, classes_of(small.oracle.layout()));
  save_weights(directory, shape, small.oracle.layout(), small.vocabulary, small.oracle.weight_view(), {});
}

}  // namespace hsm
