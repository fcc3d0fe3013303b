#include "text/vocabulary.h"

#include <algorithm>
#include <charconv>
#include <limits>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/hash.h"
#include "base/utf8.h"
#include "text/lowercase.h"

namespace hsm {
namespace {

constexpr std::string_view kSeparators{" \t\n\v\f\r\0", 7};

// Why `word` can't be one, or an empty text.
std::string word_fault(std::string_view word) {
  if (word.empty()) return "an empty word";
  if (word.find_first_of(kSeparators) != std::string_view::npos) {
    return quote(word) + " holds white space, which separates words";
  }
  if (find_malformed_utf8(word)) return quote(word) + " is not well-formed UTF-8";
  if (word == kStartOfSentence) return "\"<s>\" is reserved and never a word of a text";
  return {};
}

[[noreturn]] void fail_at(const LineReader& reader, const std::string& what) {
  throw DataError(reader.name() + ":" + std::to_string(reader.line_number()) + ": " + what);
}

Vocabulary::Entry parse_entry(const LineReader& reader, std::string_view line) {
  const size_t tab = line.find('\t');
  if (tab == std::string_view::npos) {
    fail_at(reader, quote(line) + " given, expected a word, a tab and its count");
  }
  Vocabulary::Entry entry{std::string(line.substr(0, tab)), 0};
  if (const std::string fault = word_fault(entry.word); !fault.empty()) fail_at(reader, fault);
  const std::string_view digits = line.substr(tab + 1);
  const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), entry.count);
  if (error != std::errc{} || end != digits.data() + digits.size() || entry.count < 0) {
    fail_at(reader, "count " + quote(digits) + " given for " + quote(entry.word) +
                        ", expected a whole number from 0");
  }
  return entry;
}

// Enters words in order and tells the first that was there already.
class DuplicateCheck {
 public:
  explicit DuplicateCheck(const std::vector<Vocabulary::Entry>& entries) : entries_(entries) {}
  bool is_new(int32_t id) {
    const auto word_of = [this](int32_t i) -> std::string_view {
      return entries_[static_cast<size_t>(i)].word;
    };
    return slots_.find_or_add(word_of(id), id, word_of) == id;
  }

 private:
  const std::vector<Vocabulary::Entry>& entries_;
  WordSlots slots_;
};

constexpr size_t kMostWords = std::numeric_limits<int32_t>::max();

}  // namespace

bool precedes(const Vocabulary::Entry& a, const Vocabulary::Entry& b) noexcept {
  return a.count != b.count ? a.count > b.count : a.word < b.word;
}

Vocabulary::Vocabulary(std::vector<Entry> entries) : entries_(std::move(entries)) {
  const auto word_of = [this](int32_t id) -> std::string_view { return word(id); };
  Hasher hasher;
  for (int32_t id = 0; id < size(); ++id) {
    slots_.find_or_add(word(id), id, word_of);
    hasher.add(word(id));
    hasher.add("\n");
    total_count_ += count(id);
  }
  hash_ = hasher.hex();
  end_of_sentence_ = find(kEndOfSentence).value();
  unknown_ = find(kUnknownWord).value();
}

Vocabulary Vocabulary::from_counts(std::vector<Entry> entries) {
  for (const std::string_view reserved : {kEndOfSentence, kUnknownWord}) {
    const auto same = [&](const Entry& entry) { return entry.word == reserved; };
    if (std::none_of(entries.begin(), entries.end(), same)) entries.push_back({std::string(reserved), 0});
  }
  if (entries.size() > kMostWords) {
    throw DataError("vocabulary: " + std::to_string(entries.size()) + " words, at most " +
                    std::to_string(kMostWords) + " are possible");
  }
  std::sort(entries.begin(), entries.end(), precedes);
  DuplicateCheck check(entries);
  for (size_t i = 0; i < entries.size(); ++i) {
    const Entry& entry = entries[i];
    if (const std::string fault = word_fault(entry.word); !fault.empty())
      throw DataError("vocabulary: " + fault);
    if (entry.count < 0) throw DataError("vocabulary: negative count for " + quote(entry.word));
    if (!check.is_new(static_cast<int32_t>(i)))
      throw DataError("vocabulary: " + quote(entry.word) + " is there twice");
  }
  return Vocabulary(std::move(entries));
}

Vocabulary Vocabulary::load(const std::filesystem::path& path) {
  LineReader reader(path.string());
  std::vector<Entry> entries;
  DuplicateCheck check(entries);
  std::string line;
  while (reader.next(line)) {
    entries.push_back(parse_entry(reader, line));
    const Entry& entry = entries.back();
    if (entries.size() > kMostWords) fail_at(reader, "more words than are possible");
    if (!check.is_new(static_cast<int32_t>(entries.size() - 1))) {
      fail_at(reader, quote(entry.word) + " is there twice");
    }
    if (entries.size() > 1 && !precedes(entries[entries.size() - 2], entry)) {
      fail_at(reader, quote(entry.word) + " is out of order, expected falling counts and ties by spelling");
    }
  }
  for (const std::string_view reserved : {kEndOfSentence, kUnknownWord}) {
    const auto same = [&](const Entry& entry) { return entry.word == reserved; };
    if (std::none_of(entries.begin(), entries.end(), same)) {
      throw DataError(reader.name() + ": has no " + quote(reserved) + ", expected it among the words");
    }
  }
  return Vocabulary(std::move(entries));
}

void Vocabulary::save(const std::filesystem::path& path) const {
  AtomicFile file(path);
  for (const Entry& entry : entries_) file.write(entry.word + "\t" + std::to_string(entry.count) + "\n");
  file.commit();
}

std::optional<int32_t> Vocabulary::find(std::string_view word) const {
  const int32_t id = slots_.find(word, [this](int32_t i) -> std::string_view { return this->word(i); });
  return id < 0 ? std::nullopt : std::optional<int32_t>(id);
}

int32_t Vocabulary::id_or_unknown(std::string_view word) const {
  return find(word).value_or(unknown_);
}

std::vector<std::string> load_word_list(const std::filesystem::path& path, const TextOptions& options) {
  LineReader reader(path.string());
  std::vector<std::string> words;
  WordSlots slots;
  const auto word_of = [&](int32_t id) -> std::string_view { return words[static_cast<size_t>(id)]; };
  std::string line;
  while (reader.next(line)) {
    line.resize(std::min(line.find('\t'), line.size()));
    if (line == kStartOfSentence) continue;
    if (const std::string fault = word_fault(line); !fault.empty()) fail_at(reader, fault);
    if (options.lowercase) lowercase(line);
    if (words.size() >= kMostWords) fail_at(reader, "more words than are possible");
    const auto next = static_cast<int32_t>(words.size());
    if (slots.find_or_add(line, next, word_of) == next) {
      words.push_back(line);
    } else if (!options.lowercase) {
      fail_at(reader, quote(line) + " is listed twice");
    }
  }
  if (words.empty()) throw DataError(reader.name() + ": holds no word, expected one a line");
  return words;
}

}  // namespace hsm
