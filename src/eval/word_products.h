#pragma once
#include <cstdint>
#include <span>
#include <vector>

#include "base/thread_pool.h"
#include "model/inference_model.h"

namespace hsm {

/// The first layer's input products of words that a text has shown: frequent words stand in it again and
/// again, and their products are the same each time, to the bit.
class WordProducts {
 public:
  static constexpr uint64_t kBytes = uint64_t{16} << 20;

  /// Keeps as many words as fit in `bytes`, the first that it is shown. `model` must outlive the object.
  explicit WordProducts(const InferenceModel& model, uint64_t bytes = kBytes);

  /// Works out the products of those of `words` that are new, while there is room.
  void learn(std::span<const int32_t> words, ThreadPool& pool);

  /// What a thread needs for fill().
  struct Scratch {
    std::vector<int32_t> tokens;
    std::vector<size_t> places;
    std::vector<float> embeddings;
    std::vector<float> products;
  };
  /// Products of any words, [tokens, product_width]; several threads may ask at the same time. DataError for
  /// a word that is not in the vocabulary.
  void fill(std::span<const int32_t> tokens, float* products, Scratch& scratch) const;

 private:
  [[nodiscard]] const float* find(int32_t word) const;

  const InferenceModel* model_;
  int64_t width_;
  int64_t capacity_;
  std::vector<int32_t> slot_of_word_;  // -1: not known
  std::vector<int32_t> words_;         // by slot
  std::vector<float> products_;        // [slots, width]
};

}  // namespace hsm
