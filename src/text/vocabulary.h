#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

namespace hsm {

inline constexpr std::string_view kEndOfSentence = "</s>";
inline constexpr std::string_view kStartOfSentence = "<s>";
inline constexpr std::string_view kUnknownWord = "<unk>";

/// Words and their public ids. An id is a word's rank by training count (ties by spelling), whatever the
/// classes. `</s>` and `<unk>` are always there.
class Vocabulary {
 public:
  struct Entry {
    std::string word;
    int64_t count = 0;
  };

  /// Entries in any order; sorted here. `</s>` and `<unk>` are added with count 0 when missing.
  static Vocabulary from_counts(std::vector<Entry> entries);
  /// vocabulary.txt: "word<TAB>count" a line in id order. DataError with file and line.
  static Vocabulary load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;

  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(entries_.size()); }
  [[nodiscard]] const std::string& word(int32_t id) const { return entries_[static_cast<size_t>(id)].word; }
  [[nodiscard]] int64_t count(int32_t id) const { return entries_[static_cast<size_t>(id)].count; }
  [[nodiscard]] std::optional<int32_t> find(std::string_view word) const;
  [[nodiscard]] int32_t end_of_sentence() const noexcept { return end_of_sentence_; }
  [[nodiscard]] int32_t unknown() const noexcept { return unknown_; }
  /// Hash of the words in order, as hexadecimal digits.
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }

 private:
  explicit Vocabulary(std::vector<Entry> sorted);

  std::vector<Entry> entries_;
  std::unordered_map<std::string_view, int32_t> ids_;  // views into entries_
  int32_t end_of_sentence_ = 0;
  int32_t unknown_ = 0;
  std::string hash_;
};

}  // namespace hsm
