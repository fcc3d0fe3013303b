#pragma once
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <ostream>
#include <string>
#include <vector>

#include "classes/word_classes.h"
#include "model/model_shape.h"
#include "reference/model_oracle.h"

namespace hsm {

/// A layout of `shortlist` root words and clusters of the given sizes, ids dealt out so that neither the
/// shortlist nor a cluster is a range of ids.
inline HeadLayout sample_layout(int64_t shortlist, const std::vector<int64_t>& sizes) {
  std::vector<int32_t> clusters(static_cast<size_t>(shortlist), kShortlist);
  for (size_t cluster = 0; cluster < sizes.size(); ++cluster) {
    clusters.insert(clusters.end(), static_cast<size_t>(sizes[cluster]), static_cast<int32_t>(cluster));
  }
  WordClasses classes;
  classes.clusters = static_cast<int32_t>(sizes.size());
  // Steps coprime to the number of words visit each word once.
  const size_t words = clusters.size();
  const size_t stride = std::gcd(words, size_t{7}) == 1 ? 7 : 1;
  for (size_t word = 0; word < words; ++word) classes.cluster_of.push_back(clusters[word * stride % words]);
  return make_layout(classes);
}

struct SampleModel {
  std::string name;
  Cell cell = Cell::lstm;
  std::vector<int64_t> hidden;
  int64_t embedding = 0;
  bool tied = false;
  int64_t shortlist = 0;
  std::vector<int64_t> clusters;

  [[nodiscard]] ModelOracle make(uint64_t seed) const {
    HeadLayout layout = sample_layout(shortlist, clusters);
    ModelShape shape{cell, layout.words(), layout.clusters(), embedding, hidden, tied};
    return {std::move(shape), std::move(layout), seed};
  }
};

/// How a failing test names its model.
inline void PrintTo(const SampleModel& model, std::ostream* out) {
  *out << model.name;
}

/// Every cell; one to three layers of like and unlike widths; tied and not; with and without a projection,
/// a shortlist, clusters of one word, clusters at all. Sizes stand below, at and above those of vectors.
inline std::vector<SampleModel> sample_models() {
  std::vector<SampleModel> models;
  for (const Cell cell : {Cell::lstm, Cell::gru, Cell::rnn_tanh, Cell::rnn_relu}) {
    const std::string name = cell_name(cell);
    models.push_back({name + "_smallest", cell, {1}, 1, false, 2, {}});
    models.push_back({name + "_one_layer", cell, {17}, 5, false, 3, {1, 13, 2}});
    models.push_back({name + "_widths_differ", cell, {11, 33}, 16, false, 0, {9, 4, 1, 1, 30}});
    models.push_back({name + "_tied", cell, {19, 16}, 16, true, 5, {3, 1, 21}});
    models.push_back({name + "_tied_projection", cell, {8, 5, 37}, 13, true, 2, {6, 11}});
    models.push_back({name + "_no_clusters", cell, {7, 7}, 7, true, 31, {}});
  }
  return models;
}

}  // namespace hsm
