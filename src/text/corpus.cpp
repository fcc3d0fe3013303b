#include "text/corpus.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <limits>
#include <numeric>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/file.h"
#include "base/size.h"
#include "text/corpus_files.h"

namespace hsm {
namespace {

using Entry = Vocabulary::Entry;

// Words numbered in order of first appearance, and how often each was seen.
class WordCounts {
 public:
  static constexpr int32_t kEnd = 0;      // `</s>`
  static constexpr int32_t kUnknown = 1;  // `<unk>`

  // With a list, only its words are counted, and all others as `<unk>`.
  explicit WordCounts(const std::vector<std::string>* list) : closed_(list != nullptr) {
    enter(kEndOfSentence);
    enter(kUnknownWord);
    if (list == nullptr) return;
    for (const std::string& word : *list) enter(word);
  }

  int32_t count(std::string_view word) {
    int32_t id = closed_ ? slots_.find(word, WordOf{entries_}) : enter(word);
    if (id < 0) {
      id = kUnknown;
      ++unlisted_;
    }
    ++entries_[static_cast<size_t>(id)].count;
    return id;
  }
  void count_end() { ++entries_[kEnd].count; }

  [[nodiscard]] std::vector<Entry>& entries() noexcept { return entries_; }
  [[nodiscard]] int64_t sentences() const noexcept { return entries_[kEnd].count; }
  [[nodiscard]] int64_t unlisted() const noexcept { return unlisted_; }

 private:
  struct WordOf {
    const std::vector<Entry>& entries;
    std::string_view operator()(int32_t id) const { return entries[static_cast<size_t>(id)].word; }
  };

  int32_t enter(std::string_view word) {
    const auto next = static_cast<int32_t>(entries_.size());
    const int32_t id = slots_.find_or_add(word, next, WordOf{entries_});
    if (id != next) return id;
    if (next == std::numeric_limits<int32_t>::max())
      throw DataError("the text has more words than are possible");
    entries_.push_back({std::string(word), 0});
    return id;
  }

  bool closed_;
  std::vector<Entry> entries_;
  WordSlots slots_;
  int64_t unlisted_ = 0;
};

struct Selection {
  std::vector<Entry> entries;   // in the vocabulary's order
  std::vector<int32_t> new_id;  // by number of first appearance
  int64_t dropped = 0;          // tokens whose word isn't kept
};

// Keeps the reserved symbols and those words that the options allow.
Selection select(std::vector<Entry>& entries, const VocabularyOptions& options) {
  const auto by_rank = [&](size_t a, size_t b) { return precedes(entries[a], entries[b]); };
  std::vector<size_t> kept(entries.size() - 2);
  std::iota(kept.begin(), kept.end(), size_t{2});
  if (options.file.empty()) {
    std::erase_if(kept, [&](size_t i) { return entries[i].count < options.min_count; });
  }
  std::sort(kept.begin(), kept.end(), by_rank);
  if (options.max_size > 0) kept.resize(std::min(kept.size(), static_cast<size_t>(options.max_size) - 2));

  Selection selection;
  selection.new_id.assign(entries.size(), -1);
  for (const size_t i : kept) selection.new_id[i] = 0;
  for (size_t i = 2; i < entries.size(); ++i) {
    if (selection.new_id[i] < 0) selection.dropped += entries[i].count;
  }
  entries[WordCounts::kUnknown].count += selection.dropped;

  for (const int32_t reserved : {WordCounts::kEnd, WordCounts::kUnknown}) {
    const auto i = static_cast<size_t>(reserved);
    kept.insert(std::lower_bound(kept.begin(), kept.end(), i, by_rank), i);
  }
  for (size_t rank = 0; rank < kept.size(); ++rank) selection.new_id[kept[rank]] = static_cast<int32_t>(rank);
  const int32_t unknown = selection.new_id[WordCounts::kUnknown];
  for (int32_t& id : selection.new_id) {
    if (id < 0) id = unknown;
  }
  for (const size_t i : kept) selection.entries.push_back(std::move(entries[i]));
  return selection;
}

void check(const VocabularyOptions& options) {
  if (options.min_count < 1) {
    throw UsageError("vocabulary.min_count: " + std::to_string(options.min_count) +
                     " given, expected 1 or more");
  }
  if (options.max_size < 0 || options.max_size == 1 || options.max_size == 2) {
    throw UsageError("vocabulary.max_size: " + std::to_string(options.max_size) +
                     " given, expected 0 (no limit) or 3 and more: </s> and <unk> are among them");
  }
  if (!options.file.empty() && (options.min_count != 1 || options.max_size != 0)) {
    throw UsageError(
        "vocabulary.file: all its words are kept, so min_count and max_size can't be given with it");
  }
}

// A model needs at least one word besides the reserved symbols.
void check_words(const CorpusFiles& files, const std::vector<Entry>& entries,
                 const VocabularyOptions& options) {
  if (std::all_of(entries.begin() + 1, entries.end(), [](const Entry& entry) { return entry.count == 0; })) {
    throw DataError(files.names() + ": the training text holds no words");
  }
  if (entries.size() == 2) {
    throw DataError(options.file.empty() ? files.names() + ": the training text holds no word but <unk>"
                                         : options.file + ": holds no word besides reserved symbols");
  }
  if (!options.file.empty()) return;
  int64_t most = 0;
  for (size_t i = 2; i < entries.size(); ++i) most = std::max(most, entries[i].count);
  if (most < options.min_count) {
    throw UsageError("vocabulary.min_count: " + std::to_string(options.min_count) +
                     " leaves no word, as the most frequent in " + files.names() + " is seen " +
                     format_count(most) + " times");
  }
}

void make_folder_of(const std::filesystem::path& file) {
  if (file.has_parent_path()) make_directories(file.parent_path());
}

// The token file at `cache` when it is that of `key`.
std::optional<TokenFile> find_cached(const std::filesystem::path& cache, uint64_t key) {
  std::error_code ignored;
  if (!std::filesystem::exists(cache, ignored)) return std::nullopt;
  try {
    TokenFile file(cache);
    if (file.key() != key) return std::nullopt;
    if (file.intact()) return file;
    spdlog::warn("{}: the token file is damaged and is made anew", cache.string());
  } catch (const DataError& error) {
    spdlog::warn("{}; the token file is made anew", error.what());
  }
  return std::nullopt;
}

}  // namespace

Vocabulary read_training_text(const std::vector<std::string>& paths, const CorpusOptions& options,
                              const VocabularyOptions& vocabulary_options, const std::filesystem::path& cache,
                              const ReadProgress& progress) {
  check(vocabulary_options);
  const CorpusFiles files(paths);
  std::optional<std::vector<std::string>> list;
  if (!vocabulary_options.file.empty()) list = load_word_list(vocabulary_options.file, options.text);
  WordCounts counts(list ? &*list : nullptr);
  list.reset();

  std::optional<TokenFileWriter> writer;
  if (!cache.empty()) {
    make_folder_of(cache);
    writer.emplace(cache);
  }
  const auto write = [&writer](int32_t id) {
    if (writer) writer->add(id);
  };
  WordReader reader(files, options, progress);
  std::vector<std::string_view> words;
  for (bool ends = false; reader.next(words, ends);) {
    for (const std::string_view word : words) write(counts.count(word));
    if (!ends) continue;
    counts.count_end();
    write(WordCounts::kEnd);
  }
  check_words(files, counts.entries(), vocabulary_options);

  const int64_t sentences = counts.sentences();
  Selection selection = select(counts.entries(), vocabulary_options);
  Vocabulary vocabulary = Vocabulary::from_counts(std::move(selection.entries));
  if (!writer) return vocabulary;
  writer->renumber(selection.new_id);
  writer->commit(sentences, counts.unlisted() + selection.dropped, files.key(options, vocabulary));
  return vocabulary;
}

TokenFile tokenize(const std::vector<std::string>& paths, const CorpusOptions& options,
                   const Vocabulary& vocabulary, const std::filesystem::path& cache,
                   const ReadProgress& progress) {
  const CorpusFiles files(paths);
  const uint64_t key = files.key(options, vocabulary);
  if (!files.has_streams() || options.streams_from_cache) {
    if (std::optional<TokenFile> cached = find_cached(cache, key)) return std::move(*cached);
  }
  if (files.has_streams() && options.streams_from_cache) {
    throw DataError(cache.string() + ": doesn't hold the tokens of " + files.names() +
                    " under this vocabulary and these options, and a stream can't be read a second time");
  }

  make_folder_of(cache);
  TokenFileWriter writer(cache);
  WordReader reader(files, options, progress);
  std::vector<std::string_view> words;
  int64_t sentences = 0;
  int64_t unknown = 0;
  for (bool ends = false; reader.next(words, ends);) {
    for (const std::string_view word : words) {
      const std::optional<int32_t> id = vocabulary.find(word);
      unknown += id ? 0 : 1;
      writer.add(id.value_or(vocabulary.unknown()));
    }
    if (!ends) continue;
    writer.add(vocabulary.end_of_sentence());
    ++sentences;
  }
  writer.commit(sentences, unknown, key);
  return TokenFile(cache);
}

}  // namespace hsm
