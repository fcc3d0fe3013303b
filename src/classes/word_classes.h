#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

namespace hsm {

inline constexpr int32_t kShortlist = -1;

/// Which cluster each word belongs to, by public id; kShortlist for words at the root.
struct WordClasses {
  std::vector<int32_t> cluster_of;  ///< vocabulary size entries in [0, clusters), or kShortlist
  int32_t clusters = 0;
};

/// The order of rows in the head: shortlist words first (by id), then cluster by cluster (by id within one).
/// docs/file-formats.md calls these `head.row_of_word` and `head.cluster_offsets`.
struct HeadLayout {
  std::vector<int64_t> row_of_word;  ///< by public id
  std::vector<int32_t> word_of_row;
  std::vector<int64_t> cluster_offsets;  ///< clusters + 1 rows; cluster c has rows [offsets[c], offsets[c+1])
  std::vector<int32_t> cluster_of_row;   ///< kShortlist for shortlist rows

  [[nodiscard]] int64_t words() const noexcept { return static_cast<int64_t>(row_of_word.size()); }
  [[nodiscard]] int64_t clusters() const noexcept { return static_cast<int64_t>(cluster_offsets.size()) - 1; }
  /// Shortlist words: rows below cluster_offsets[0].
  [[nodiscard]] int64_t shortlist() const noexcept { return cluster_offsets.front(); }
  /// Hash of the two saved tables, as hexadecimal digits.
  [[nodiscard]] std::string hash() const;
};

/// Takes clusters without words out and numbers the others in order.
void drop_empty_clusters(WordClasses& classes);

/// Every cluster must have at least one word (DataError else).
HeadLayout make_layout(const WordClasses& classes);

/// Rebuilds a layout from its two saved tables. DataError when they don't describe one.
HeadLayout make_layout(std::span<const int64_t> row_of_word, std::span<const int64_t> cluster_offsets);

/// The classes that a layout was made from.
WordClasses classes_of(const HeadLayout& layout);

}  // namespace hsm
