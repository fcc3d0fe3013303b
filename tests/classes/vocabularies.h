#pragma once
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "text/vocabulary.h"

namespace hsm {

/// `words` words whose counts fall as in real text, with many ties among the rare; `</s>` frequent, `<unk>`
/// rare.
inline Vocabulary zipf_vocabulary(int64_t words, double scale = 50'000) {
  std::vector<Vocabulary::Entry> entries = {{"</s>", static_cast<int64_t>(scale / 3)}, {"<unk>", 1}};
  for (int64_t rank = 1; rank <= words - 2; ++rank) {
    entries.push_back(
        {"w" + std::to_string(rank), 1 + static_cast<int64_t>(scale / static_cast<double>(rank))});
  }
  return Vocabulary::from_counts(std::move(entries));
}

}  // namespace hsm
