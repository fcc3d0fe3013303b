#include "classes/word_parts.h"

#include <algorithm>

namespace hsm {
namespace {

// Shortlist words beyond these share a group, so that tables stay small.
constexpr int64_t kMostSingles = 4096;

}  // namespace

WordParts part_words(const Vocabulary& vocabulary, const RankedWords& words, int64_t first, int64_t clusters,
                     int64_t most_moving) {
  constexpr int32_t kShortlisted = -1;
  constexpr int32_t kRare = -2;
  WordParts parts;
  parts.clusters = clusters;
  parts.moving = std::min(words.size() - first, std::max(clusters, most_moving));
  parts.item_of.assign(static_cast<size_t>(vocabulary.size()), kShortlisted);
  for (int64_t rank = first; rank < words.size(); ++rank) {
    const int32_t id = words.id(rank);
    const bool moves = rank - first < parts.moving;
    parts.item_of[static_cast<size_t>(id)] = moves ? static_cast<int32_t>(rank - first) : kRare;
    (moves ? parts.moving_ids : parts.rare_ids).push_back(id);
  }
  const int64_t shortlisted = vocabulary.size() - (words.size() - first);
  const int64_t singles = std::min(shortlisted, kMostSingles);
  parts.fixed = singles + 1;
  int64_t next = 0;
  for (int32_t& item : parts.item_of) {
    if (item >= 0) continue;
    const bool single = item == kShortlisted && next < singles;
    item = static_cast<int32_t>(parts.moving + (single ? next++ : singles));
  }
  return parts;
}

}  // namespace hsm
