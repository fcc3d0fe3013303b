#include "eval/nbest.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <optional>
#include <utility>

#include "base/error.h"
#include "base/utf8.h"
#include "config/json_line.h"
#include "text/lowercase.h"

namespace hsm {
namespace {

constexpr std::string_view kSeparator = "|||";
constexpr std::string_view kSpace = " \t\v\f\r";

std::string_view trimmed(std::string_view text) {
  const size_t first = text.find_first_not_of(kSpace);
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(kSpace) + 1 - first);
}

std::string_view first_word(std::string_view line) {
  line = trimmed(line);
  return line.substr(0, line.find_first_of(kSpace));
}

std::optional<double> parse_number(std::string_view text) {
  double value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size() || !std::isfinite(value)) return std::nullopt;
  return value;
}

void replace_all(std::string& text, std::string_view what, std::string_view by) {
  for (size_t at = text.find(what); at != std::string::npos; at = text.find(what, at + by.size())) {
    text.replace(at, what.size(), by);
  }
}

}  // namespace

NbestReader::NbestReader(const std::string& path, const NbestReaderOptions& options,
                         const Vocabulary& vocabulary, std::function<void(const std::string&)> bad_line)
    : reader_(path), options_(options), vocabulary_(&vocabulary), bad_line_(std::move(bad_line)) {
  if (!options_.channel_costs.empty()) costs_ = std::make_unique<LineReader>(options_.channel_costs);
}

NbestReader::~NbestReader() = default;

void NbestReader::fail(const std::string& what) const {
  throw DataError(reader_.name() + ":" + std::to_string(reader_.line_number()) + ": " + what);
}

bool NbestReader::read(std::vector<NbestList>& lists, int64_t hypotheses) {
  int64_t added = 0;
  size_t counted = lists.size();
  const size_t before = lists.size();
  while (added < hypotheses && (lists.size() == before || reader_.line_ready())) {
    if (!reader_.next(line_)) {
      if (!open_.hypotheses.empty()) lists.push_back(std::exchange(open_, {}));
      return false;
    }
    if (costs_) read_cost();
    take_line(lists);
    for (; counted < lists.size(); ++counted) {
      added += std::max<int64_t>(1, static_cast<int64_t>(lists[counted].hypotheses.size()));
    }
  }
  return true;
}

void NbestReader::take_line(std::vector<NbestList>& lists) {
  try {
    if (options_.format == NbestFormat::jsonl) {
      take_json(lists);
    } else {
      take_hypothesis(lists);
    }
  } catch (const DataError& error) {
    if (options_.bad_lines == BadLines::error) throw;
    bad_line_(error.what());
    if (options_.format != NbestFormat::jsonl) return;
    NbestList bad;
    bad.line = reader_.line_number();
    bad.error = error.what();
    lists.push_back(std::move(bad));
  }
}

// A list is complete when a hypothesis of another one comes.
void NbestReader::take_hypothesis(std::vector<NbestList>& lists) {
  NbestHypothesis hypothesis;
  std::string id;
  if (options_.format == NbestFormat::kaldi) {
    read_kaldi(hypothesis, id);
  } else {
    read_moses(hypothesis, id);
  }
  if (!open_.hypotheses.empty() && id != open_.id) lists.push_back(std::exchange(open_, {}));
  if (open_.hypotheses.empty()) {
    open_.id = std::move(id);
    open_.json_id = Json(open_.id).dump();
    open_.line = reader_.line_number();
  }
  hypothesis.place = static_cast<int64_t>(open_.hypotheses.size());
  open_.hypotheses.push_back(std::move(hypothesis));
}

void NbestReader::read_kaldi(NbestHypothesis& hypothesis, std::string& id) {
  hypothesis.key = first_word(line_);
  hypothesis.channel = channel_;
  const size_t dash = hypothesis.key.rfind('-');
  if (dash == std::string::npos || dash == 0) {
    fail("the key " + quote(hypothesis.key) + " given, expected UTTERANCE-NUMBER");
  }
  if (find_malformed_utf8(hypothesis.key)) fail("the key is not well-formed UTF-8: " + quote(hypothesis.key));
  id = hypothesis.key.substr(0, dash);
  read_words(std::string(trimmed(line_).substr(hypothesis.key.size())), hypothesis);
}

// The channel's cost of the line just read, whether that is a bad one or not.
void NbestReader::read_cost() {
  const std::string_view key = first_word(line_);
  const std::string of = " of " + reader_.name() + ":" + std::to_string(reader_.line_number());
  if (!costs_->next(cost_line_)) throw DataError(costs_->name() + ": ends before " + quote(key) + of);
  const std::string_view given = first_word(cost_line_);
  const std::string place = costs_->name() + ":" + std::to_string(costs_->line_number()) + ": ";
  if (given != key)
    throw DataError(place + "the key " + quote(given) + " given, expected " + quote(key) + of);
  const std::string_view number = trimmed(trimmed(cost_line_).substr(given.size()));
  const auto cost = parse_number(number);
  if (!cost) throw DataError(place + quote(number) + " given, expected a cost");
  channel_ = -*cost;
}

void NbestReader::read_moses(NbestHypothesis& hypothesis, std::string& id) {
  std::vector<std::string_view> fields;
  std::string_view left = line_;
  while (fields.size() < 4) {
    const size_t at = left.find(kSeparator);
    fields.push_back(trimmed(left.substr(0, at)));
    if (at == std::string_view::npos) {
      left = {};
      break;
    }
    left.remove_prefix(at + kSeparator.size());
  }
  if (fields.size() < 2) fail("expected NUMBER ||| WORDS, then ||| FEATURES ||| SCORE if there are any");
  id = fields[0];
  if (id.empty() || find_malformed_utf8(id)) fail("the number " + quote(id) + " given, expected one");
  if (fields.size() > 2) hypothesis.features = fields[2];
  if (find_malformed_utf8(hypothesis.features)) fail("the features are not well-formed UTF-8");
  if (fields.size() > 3) {
    const auto score = parse_number(fields[3]);
    if (!score) fail("the score " + quote(fields[3]) + " given, expected a number");
    hypothesis.channel = *score;
  }
  if (!trimmed(left).empty()) hypothesis.rest = " ||| " + std::string(trimmed(left));
  std::string text(fields[1]);
  replace_all(text, "&#124;", "|");
  read_words(std::move(text), hypothesis);
}

// The text keeps its own capital letters, whatever the model reads.
void NbestReader::read_words(std::string text, NbestHypothesis& hypothesis) {
  split_line(text, {}, reader_.name(), reader_.line_number(), words_);
  std::string word;
  for (const std::string_view written : words_) {
    if (!hypothesis.text.empty()) hypothesis.text += ' ';
    hypothesis.text += written;
    word = written;
    if (options_.text.lowercase) lowercase(word);
    hypothesis.ids.push_back(vocabulary_->id_or_unknown(word));
    hypothesis.unknown += hypothesis.ids.back() == vocabulary_->unknown() ? 1 : 0;
  }
  hypothesis.ids.push_back(vocabulary_->end_of_sentence());
}

void NbestReader::take_json(std::vector<NbestList>& lists) {
  const JsonLine json(line_, reader_.name(), reader_.line_number());
  NbestList list;
  list.line = reader_.line_number();
  if (const Json* id = json.find("id")) list.json_id = json.name_of(*id, "id");
  const Json* given = json.find("hypotheses");
  if (given == nullptr) json.fail("hypotheses: missing, expected a list");
  for (const Json& value : json.list(*given, "hypotheses")) {
    const std::string path = element_path("hypotheses", list.hypotheses.size());
    NbestHypothesis hypothesis;
    hypothesis.place = static_cast<int64_t>(list.hypotheses.size());
    if (value.is_object()) {
      for (const char* key : {"text", "score"}) {
        if (!value.contains(key)) json.fail(join_path(path, key) + ": missing");
      }
      hypothesis.channel = json.number(value["score"], join_path(path, "score"));
      read_words(json.text(value["text"], join_path(path, "text")), hypothesis);
    } else if (value.is_string()) {
      read_words(value.get<std::string>(), hypothesis);
    } else {
      json.fail(path, value, R"(a string or {"text": …, "score": …})");
    }
    list.hypotheses.push_back(std::move(hypothesis));
  }
  lists.push_back(std::move(list));
}

void rescore(NbestList& list, const NbestWeights& weights) {
  for (NbestHypothesis& hypothesis : list.hypotheses) {
    hypothesis.score = hypothesis.channel + weights.lm_weight * hypothesis.log_prob +
                       weights.word_bonus * static_cast<double>(hypothesis.words()) -
                       weights.oov_penalty * static_cast<double>(hypothesis.unknown);
  }
  std::stable_sort(list.hypotheses.begin(), list.hypotheses.end(),
                   [](const NbestHypothesis& a, const NbestHypothesis& b) { return a.score > b.score; });
}

}  // namespace hsm
