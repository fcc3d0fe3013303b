#pragma once
#include <cstdint>
#include <vector>

#include "text/token_file.h"

namespace hsm {

/// Where the sentences of a corpus start, ordered by length (`</s>` counted), those of equal length by place.
/// 8 bytes a sentence.
class SentenceIndex {
 public:
  /// Sentences of one length: ranks [first, last).
  struct Bucket {
    int64_t length = 0;
    int64_t first = 0;
    int64_t last = 0;
  };

  SentenceIndex(const TokenFile& tokens, int32_t end_of_sentence);

  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(starts_.size()); }
  [[nodiscard]] int64_t start(int64_t rank) const { return starts_[static_cast<size_t>(rank)]; }
  [[nodiscard]] const Bucket& bucket(int64_t rank) const;

 private:
  std::vector<int64_t> starts_;
  std::vector<Bucket> buckets_;
};

}  // namespace hsm
