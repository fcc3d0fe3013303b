#include "classes/class_file.h"

#include <spdlog/spdlog.h>

#include <algorithm>
#include <map>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/lines.h"

namespace hsm {
namespace {

constexpr std::string_view kShortlistName = "-";
constexpr std::string_view kSpace = " \t\n\v\f\r";
constexpr int32_t kMissing = -2;
constexpr size_t kNamedWords = 5;

struct Line {
  std::string_view word;
  std::string_view name;
};

[[noreturn]] void fail_at(const LineReader& reader, const std::string& what) {
  throw DataError(reader.name() + ":" + std::to_string(reader.line_number()) + ": " + what);
}

// Cuts the first field off `rest`.
std::string_view take_field(std::string_view& rest) {
  rest.remove_prefix(std::min(rest.find_first_not_of(kSpace), rest.size()));
  const std::string_view field = rest.substr(0, rest.find_first_of(kSpace));
  rest.remove_prefix(field.size());
  return field;
}

bool consists_of(std::string_view text, std::string_view characters) {
  return !text.empty() && text.find_first_not_of(characters) == std::string_view::npos;
}

// "word class", or what Brown clusterings have: the path of the class in bits, the word, its count.
Line parse_line(const LineReader& reader, const std::string& text) {
  if (const auto at = find_malformed_utf8(text)) {
    fail_at(reader, "byte " + std::to_string(*at + 1) + " is not well-formed UTF-8");
  }
  if (text.starts_with('\t')) fail_at(reader, quote(text) + " given, expected no empty field before a tab");
  std::string_view rest = text;
  const std::string_view first = take_field(rest);
  const std::string_view second = take_field(rest);
  const std::string_view third = take_field(rest);
  if (!second.empty() && third.empty()) return {first, second};
  if (consists_of(first, "01") && consists_of(third, "0123456789") && take_field(rest).empty()) {
    return {second, first};
  }
  fail_at(reader, quote(text) + " given, expected a word and its class");
}

bool is_number(std::string_view name) {
  return consists_of(name, "0123456789") && (name.size() == 1 || name.front() != '0');
}

// Whole numbers by value (the shorter is the smaller), then other names by spelling.
struct NameOrder {
  bool operator()(const std::string& a, const std::string& b) const {
    const bool a_number = is_number(a);
    if (a_number != is_number(b)) return a_number;
    if (a_number && a.size() != b.size()) return a.size() < b.size();
    return a < b;
  }
};

bool is_reserved(const Vocabulary& vocabulary, int32_t word) {
  return word == vocabulary.unknown() || word == vocabulary.end_of_sentence();
}

void check_complete(const LineReader& reader, const Vocabulary& vocabulary,
                    const std::vector<int32_t>& class_of) {
  const auto missing = std::count(class_of.begin(), class_of.end(), kMissing);
  if (missing == 0) return;
  std::string names;
  size_t named = 0;
  for (int32_t word = 0; word < vocabulary.size() && named < kNamedWords; ++word) {
    if (class_of[static_cast<size_t>(word)] != kMissing) continue;
    names += (named == 0 ? "" : ", ") + quote(vocabulary.word(word));
    ++named;
  }
  throw DataError(reader.name() + ": " + format_count(missing) + (missing == 1 ? " word" : " words") +
                  " of the vocabulary without a class: " + names +
                  (missing > static_cast<int64_t>(named) ? ", …" : ""));
}

// Numbers classes, which are numbered by first appearance, by name.
WordClasses number_by_name(const std::map<std::string, int32_t, NameOrder>& names,
                           std::vector<int32_t> class_of) {
  std::vector<int32_t> number(names.size());
  int32_t next = 0;
  for (const auto& [name, first] : names) number[static_cast<size_t>(first)] = next++;
  for (int32_t& c : class_of) {
    if (c != kShortlist) c = number[static_cast<size_t>(c)];
  }
  return {std::move(class_of), next};
}

}  // namespace

std::string format_classes(const Vocabulary& vocabulary, const WordClasses& classes) {
  std::string text;
  for (int32_t word = 0; word < vocabulary.size(); ++word) {
    const int32_t cluster = classes.cluster_of[static_cast<size_t>(word)];
    text += vocabulary.word(word);
    text += '\t';
    text += cluster == kShortlist ? std::string(kShortlistName) : std::to_string(cluster);
    text += '\n';
  }
  return text;
}

void save_classes(const std::filesystem::path& path, const Vocabulary& vocabulary,
                  const WordClasses& classes) {
  write_file(path, format_classes(vocabulary, classes));
}

void check_saved_classes(const std::filesystem::path& path, const Vocabulary& vocabulary,
                         const WordClasses& classes, const std::string& origin) {
  const std::string actual = read_file(path);
  const std::string expected = format_classes(vocabulary, classes);
  if (actual == expected) return;
  const auto differing = std::ranges::mismatch(actual, expected).in1;
  const auto line = std::count(actual.begin(), differing, '\n') + 1;
  throw DataError(path.string() + ":" + std::to_string(line) + ": not the classes that " + origin +
                  ": was it edited, or taken from another model?");
}

WordClasses load_classes(const std::filesystem::path& path, const Vocabulary& vocabulary) {
  LineReader reader(path.string());
  std::map<std::string, int32_t, NameOrder> names;
  std::vector<int32_t> class_of(static_cast<size_t>(vocabulary.size()), kMissing);
  int64_t unknown = 0;
  std::string text;
  while (reader.next(text)) {
    const Line line = parse_line(reader, text);
    const auto word = vocabulary.find(line.word);
    if (!word) {
      unknown += line.word == kStartOfSentence ? 0 : 1;
      continue;
    }
    int32_t& entry = class_of[static_cast<size_t>(*word)];
    if (entry != kMissing) fail_at(reader, quote(line.word) + " is there twice");
    if (line.name == kShortlistName || is_reserved(vocabulary, *word)) {
      entry = kShortlist;
    } else {
      entry = names.try_emplace(std::string(line.name), static_cast<int32_t>(names.size())).first->second;
    }
  }
  for (const int32_t reserved : {vocabulary.unknown(), vocabulary.end_of_sentence()}) {
    class_of[static_cast<size_t>(reserved)] = kShortlist;
  }
  check_complete(reader, vocabulary, class_of);
  if (names.empty())
    throw DataError(reader.name() + ": has no class, expected at least one besides the shortlist");
  if (unknown > 0) {
    spdlog::info("{}: {} not in the vocabulary and passed over", reader.name(),
                 unknown == 1 ? "1 word is" : format_count(unknown) + " words are");
  }
  return number_by_name(names, std::move(class_of));
}

}  // namespace hsm
