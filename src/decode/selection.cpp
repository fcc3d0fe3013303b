#include "decode/selection.h"

#include <algorithm>

namespace hsm {

Selection select(std::span<const Candidate> words, std::span<const Candidate> ends, int64_t beam) {
  const auto places = static_cast<size_t>(beam);
  size_t words_before = 0;
  size_t finishing = 0;
  while (finishing < ends.size() && words_before + finishing < places) {
    if (words_before < words.size() && better(words[words_before], ends[finishing])) {
      ++words_before;
    } else {
      ++finishing;
    }
  }
  return {words.first(std::min(words.size(), places)), ends.first(finishing)};
}

}  // namespace hsm
