#include "eval/word_products.h"

#include <algorithm>

namespace hsm {
namespace {

constexpr int64_t kTile = 64;  // words that one item of work multiplies

}  // namespace

WordProducts::WordProducts(const InferenceModel& model, uint64_t bytes)
    : model_(&model),
      width_(model.product_width()),
      capacity_(static_cast<int64_t>(bytes / (static_cast<uint64_t>(width_) * sizeof(float)))),
      slot_of_word_(static_cast<size_t>(model.shape().words), -1) {}

const float* WordProducts::find(int32_t word) const {
  if (word < 0 || static_cast<size_t>(word) >= slot_of_word_.size()) return nullptr;
  const int32_t slot = slot_of_word_[static_cast<size_t>(word)];
  return slot < 0 ? nullptr : products_.data() + slot * width_;
}

void WordProducts::learn(std::span<const int32_t> words, ThreadPool& pool) {
  const auto first = static_cast<int64_t>(words_.size());
  for (const int32_t word : words) {
    if (static_cast<int64_t>(words_.size()) == capacity_) break;
    if (word < 0 || static_cast<size_t>(word) >= slot_of_word_.size()) continue;
    int32_t& slot = slot_of_word_[static_cast<size_t>(word)];
    if (slot >= 0) continue;
    slot = static_cast<int32_t>(words_.size());
    words_.push_back(word);
  }
  const int64_t count = static_cast<int64_t>(words_.size()) - first;
  if (count == 0) return;
  products_.resize(words_.size() * static_cast<size_t>(width_));
  std::vector<std::vector<float>> embeddings(static_cast<size_t>(pool.threads()));
  pool.run((count + kTile - 1) / kTile, [&](int64_t tile, int thread) {
    const int64_t begin = first + tile * kTile;
    const int64_t rows = std::min(kTile, first + count - begin);
    std::vector<float>& scratch = embeddings[static_cast<size_t>(thread)];
    scratch.resize(static_cast<size_t>(kTile * model_->shape().embedding));
    model_->input_products(std::span(words_).subspan(static_cast<size_t>(begin), static_cast<size_t>(rows)),
                           products_.data() + begin * width_, scratch.data());
  });
}

void WordProducts::fill(std::span<const int32_t> tokens, float* products, Scratch& scratch) const {
  scratch.tokens.clear();
  scratch.places.clear();
  for (size_t i = 0; i < tokens.size(); ++i) {
    if (const float* known = find(tokens[i]); known != nullptr) {
      std::copy_n(known, width_, products + static_cast<int64_t>(i) * width_);
    } else {
      scratch.tokens.push_back(tokens[i]);
      scratch.places.push_back(i);
    }
  }
  if (scratch.tokens.empty()) return;
  scratch.embeddings.resize(scratch.tokens.size() * static_cast<size_t>(model_->shape().embedding));
  scratch.products.resize(scratch.tokens.size() * static_cast<size_t>(width_));
  model_->input_products(scratch.tokens, scratch.products.data(), scratch.embeddings.data());
  for (size_t i = 0; i < scratch.places.size(); ++i) {
    std::copy_n(scratch.products.data() + static_cast<int64_t>(i) * width_, width_,
                products + static_cast<int64_t>(scratch.places[i]) * width_);
  }
}

}  // namespace hsm
