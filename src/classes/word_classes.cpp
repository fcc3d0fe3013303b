#include "classes/word_classes.h"

#include <algorithm>

#include "base/error.h"
#include "base/hash.h"

namespace hsm {
namespace {

// The tables that follow from row_of_word and cluster_offsets.
void fill_derived(HeadLayout& layout) {
  const auto words = static_cast<size_t>(layout.words());
  layout.word_of_row.resize(words);
  for (size_t word = 0; word < words; ++word) {
    layout.word_of_row[static_cast<size_t>(layout.row_of_word[word])] = static_cast<int32_t>(word);
  }
  layout.cluster_of_row.assign(words, kShortlist);
  for (int64_t cluster = 0; cluster < layout.clusters(); ++cluster) {
    const auto c = static_cast<size_t>(cluster);
    std::fill(layout.cluster_of_row.begin() + layout.cluster_offsets[c],
              layout.cluster_of_row.begin() + layout.cluster_offsets[c + 1], static_cast<int32_t>(cluster));
  }
}

void check_offsets(std::span<const int64_t> offsets, int64_t words) {
  const auto refuse = [](const std::string& what) { throw DataError("head.cluster_offsets: " + what); };
  if (offsets.empty()) refuse("empty, expected the row of the first cluster at least");
  if (offsets.front() < 0)
    refuse("starts with row " + std::to_string(offsets.front()) + ", expected 0 or more");
  for (size_t c = 0; c + 1 < offsets.size(); ++c) {
    if (offsets[c + 1] <= offsets[c]) {
      refuse("cluster " + std::to_string(c) + " has rows from " + std::to_string(offsets[c]) + " to " +
             std::to_string(offsets[c + 1]) + ", expected at least one");
    }
  }
  if (offsets.back() != words) {
    refuse("ends with row " + std::to_string(offsets.back()) + ", expected the number of words, " +
           std::to_string(words));
  }
}

void check_rows(std::span<const int64_t> rows) {
  const auto words = static_cast<int64_t>(rows.size());
  std::vector<bool> taken(rows.size());
  for (size_t word = 0; word < rows.size(); ++word) {
    const int64_t row = rows[word];
    const bool known = row >= 0 && row < words;
    if (known && !taken[static_cast<size_t>(row)]) {
      taken[static_cast<size_t>(row)] = true;
      continue;
    }
    throw DataError(
        "head.row_of_word: word " + std::to_string(word) + " has row " + std::to_string(row) +
        (known ? ", which another word has, too" : ", expected one from 0 to " + std::to_string(words - 1)));
  }
}

}  // namespace

std::string HeadLayout::hash() const {
  Hasher hasher;
  hasher.add(row_of_word.data(), row_of_word.size() * sizeof(int64_t));
  hasher.add(cluster_offsets.data(), cluster_offsets.size() * sizeof(int64_t));
  return hasher.hex();
}

void drop_empty_clusters(WordClasses& classes) {
  std::vector<bool> used(static_cast<size_t>(classes.clusters));
  for (const int32_t cluster : classes.cluster_of) {
    if (cluster != kShortlist) used[static_cast<size_t>(cluster)] = true;
  }
  std::vector<int32_t> number(used.size(), kShortlist);
  classes.clusters = 0;
  for (size_t c = 0; c < used.size(); ++c) {
    if (used[c]) number[c] = classes.clusters++;
  }
  for (int32_t& cluster : classes.cluster_of) {
    if (cluster != kShortlist) cluster = number[static_cast<size_t>(cluster)];
  }
}

HeadLayout make_layout(const WordClasses& classes) {
  // Slot 0 is the shortlist, slot c + 1 is cluster c.
  std::vector<int64_t> sizes(static_cast<size_t>(classes.clusters) + 1);
  for (size_t word = 0; word < classes.cluster_of.size(); ++word) {
    const int32_t cluster = classes.cluster_of[word];
    if (cluster < kShortlist || cluster >= classes.clusters) {
      throw DataError("classes: word " + std::to_string(word) + " has class " + std::to_string(cluster) +
                      ", expected one below " + std::to_string(classes.clusters));
    }
    ++sizes[static_cast<size_t>(int64_t{cluster} + 1)];
  }
  HeadLayout layout;
  layout.cluster_offsets.push_back(sizes[0]);
  for (int32_t cluster = 0; cluster < classes.clusters; ++cluster) {
    const int64_t size = sizes[static_cast<size_t>(cluster) + 1];
    if (size == 0) throw DataError("classes: class " + std::to_string(cluster) + " has no words");
    layout.cluster_offsets.push_back(layout.cluster_offsets.back() + size);
  }
  std::vector<int64_t> next{0};
  next.insert(next.end(), layout.cluster_offsets.begin(), layout.cluster_offsets.end() - 1);
  for (const int32_t cluster : classes.cluster_of) {
    layout.row_of_word.push_back(next[static_cast<size_t>(int64_t{cluster} + 1)]++);
  }
  fill_derived(layout);
  return layout;
}

HeadLayout make_layout(std::span<const int64_t> row_of_word, std::span<const int64_t> cluster_offsets) {
  check_offsets(cluster_offsets, static_cast<int64_t>(row_of_word.size()));
  check_rows(row_of_word);
  HeadLayout layout;
  layout.row_of_word.assign(row_of_word.begin(), row_of_word.end());
  layout.cluster_offsets.assign(cluster_offsets.begin(), cluster_offsets.end());
  fill_derived(layout);
  for (size_t row = 1; row < layout.word_of_row.size(); ++row) {
    if (layout.cluster_of_row[row] == layout.cluster_of_row[row - 1] &&
        layout.word_of_row[row] < layout.word_of_row[row - 1]) {
      throw DataError("head.row_of_word: word " + std::to_string(layout.word_of_row[row]) + " has row " +
                      std::to_string(row) + ", after a word of its class with a larger id");
    }
  }
  return layout;
}

WordClasses classes_of(const HeadLayout& layout) {
  WordClasses classes;
  classes.clusters = static_cast<int32_t>(layout.clusters());
  for (const int64_t row : layout.row_of_word) {
    classes.cluster_of.push_back(layout.cluster_of_row[static_cast<size_t>(row)]);
  }
  return classes;
}

}  // namespace hsm
