#pragma once
#include <cstdint>
#include <filesystem>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "text/lines.h"
#include "text/word_slots.h"

namespace hsm {

inline constexpr std::string_view kEndOfSentence = "</s>";
inline constexpr std::string_view kStartOfSentence = "<s>";
inline constexpr std::string_view kUnknownWord = "<unk>";

/// Words and their public ids. An id is a word's rank by training count (ties by spelling), whatever the
/// classes. `</s>` and `<unk>` are always there. Moved, never copied.
class Vocabulary {
 public:
  struct Entry {
    std::string word;
    int64_t count = 0;
  };

  /// Entries in any order; sorted here. `</s>` and `<unk>` are added with count 0 when missing. DataError for
  /// what can't be a word, a word given twice, or more words than 32-bit ids can name.
  static Vocabulary from_counts(std::vector<Entry> entries);
  /// vocabulary.txt: "word<TAB>count" a line in id order. DataError with file and line.
  static Vocabulary load(const std::filesystem::path& path);
  void save(const std::filesystem::path& path) const;

  Vocabulary(Vocabulary&&) noexcept = default;
  Vocabulary& operator=(Vocabulary&&) noexcept = default;
  Vocabulary(const Vocabulary&) = delete;
  Vocabulary& operator=(const Vocabulary&) = delete;
  ~Vocabulary() = default;

  [[nodiscard]] int64_t size() const noexcept { return static_cast<int64_t>(entries_.size()); }
  [[nodiscard]] const std::string& word(int32_t id) const { return entries_[static_cast<size_t>(id)].word; }
  [[nodiscard]] int64_t count(int32_t id) const { return entries_[static_cast<size_t>(id)].count; }
  [[nodiscard]] std::optional<int32_t> find(std::string_view word) const;
  /// As find, `<unk>` for a word that isn't there.
  [[nodiscard]] int32_t id_or_unknown(std::string_view word) const;
  [[nodiscard]] int32_t end_of_sentence() const noexcept { return end_of_sentence_; }
  [[nodiscard]] int32_t unknown() const noexcept { return unknown_; }
  /// Sum of the counts: tokens of the training text, `</s>` included.
  [[nodiscard]] int64_t total_count() const noexcept { return total_count_; }
  /// Hash of the words in order, as hexadecimal digits.
  [[nodiscard]] const std::string& hash() const noexcept { return hash_; }

 private:
  // `entries` in order, without duplicates, reserved symbols included.
  explicit Vocabulary(std::vector<Entry> entries);

  std::vector<Entry> entries_;
  WordSlots slots_;
  int32_t end_of_sentence_ = 0;
  int32_t unknown_ = 0;
  int64_t total_count_ = 0;
  std::string hash_;
};

/// Whether `a` comes before `b` in a vocabulary: the larger count, then the spelling, byte by byte.
bool precedes(const Vocabulary::Entry& a, const Vocabulary::Entry& b) noexcept;

/// A list of words that a user gives (`vocabulary.file`): one a line, whatever follows a tab is ignored, so
/// that a vocabulary.txt is one, too. `<s>` is left out. When the text is lower-cased, so are the words, and
/// those that are then equal are merged; otherwise a word listed twice is refused. DataError with file and
/// line for that and for what can't be a word.
std::vector<std::string> load_word_list(const std::filesystem::path& path, const TextOptions& options);

}  // namespace hsm
