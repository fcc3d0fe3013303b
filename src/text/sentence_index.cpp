#include "text/sentence_index.h"

#include <algorithm>
#include <map>

namespace hsm {
namespace {

// Calls body(start, length) for each sentence in order.
template <class Body>
void for_each_sentence(const TokenFile& tokens, int32_t end_of_sentence, Body&& body) {
  std::vector<int32_t> window(size_t{1} << 18);
  int64_t start = 0;
  for (int64_t first = 0; first < tokens.size();) {
    const auto count = std::min(tokens.size() - first, static_cast<int64_t>(window.size()));
    tokens.read(first, {window.data(), static_cast<size_t>(count)});
    for (int64_t i = 0; i < count; ++i) {
      if (window[static_cast<size_t>(i)] != end_of_sentence) continue;
      body(start, first + i + 1 - start);
      start = first + i + 1;
    }
    first += count;
  }
}

}  // namespace

// A counting sort in two passes over the file, so that no more than the index is held.
SentenceIndex::SentenceIndex(const TokenFile& tokens, int32_t end_of_sentence) {
  std::map<int64_t, Bucket> by_length;
  for_each_sentence(tokens, end_of_sentence, [&](int64_t, int64_t length) { ++by_length[length].last; });
  int64_t sentences = 0;
  for (auto& [length, bucket] : by_length) {
    const int64_t count = bucket.last;
    bucket = {length, sentences, sentences};
    sentences += count;
  }
  starts_.resize(static_cast<size_t>(sentences));
  for_each_sentence(tokens, end_of_sentence, [&](int64_t start, int64_t length) {
    starts_[static_cast<size_t>(by_length[length].last++)] = start;
  });
  for (const auto& [length, bucket] : by_length) buckets_.push_back(bucket);
}

const SentenceIndex::Bucket& SentenceIndex::bucket(int64_t rank) const {
  return *std::upper_bound(buckets_.begin(), buckets_.end(), rank,
                           [](int64_t value, const Bucket& bucket) { return value < bucket.last; });
}

}  // namespace hsm
