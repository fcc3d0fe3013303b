#include "decode/network_reader.h"

#include <utility>
#include <vector>

#include "config/json_line.h"
#include "text/lowercase.h"

namespace hsm {
namespace {

/// One line on its way to a network.
class NetworkLine {
 public:
  NetworkLine(const std::string& text, const std::string& name, const TextOptions& options,
              const Vocabulary& vocabulary, int64_t number)
      : json_(text, name, number), name_(&name), options_(options), vocabulary_(&vocabulary), line_(number) {}

  void read(Prompt& prompt, int64_t max_positions) {
    const Json* id = json_.find("id");
    prompt.id = id == nullptr ? "" : json_.name_of(*id, "id");
    const Json* before = json_.find("prompt");
    prompt.text = before == nullptr ? "" : json_.text(*before, "prompt");
    split_prompt(prompt, options_, *vocabulary_, *name_);

    const Json* positions = json_.find("positions");
    if (positions == nullptr) json_.fail("positions: missing, expected a list of lists of alternatives");
    const Json& list = json_.list(*positions, "positions");
    if (std::cmp_greater(list.size(), max_positions)) {
      json_.fail("positions: " + std::to_string(list.size()) + " of them, expected at most " +
                 std::to_string(max_positions) + " (--max-positions)");
    }
    auto& network = prompt.network.positions;
    network.assign(list.size(), {});
    for (size_t i = 0; i < list.size(); ++i) {
      read_position(list[i], element_path("positions", i), network[i]);
    }
  }

 private:
  void read_position(const Json& json, const std::string& path, std::vector<Network::Alternative>& position) {
    const Json& alternatives = json_.list(json, path);
    if (alternatives.empty()) json_.fail(path + ": no alternative, expected at least one");
    position.resize(alternatives.size());
    for (size_t i = 0; i < alternatives.size(); ++i) {
      read_alternative(alternatives[i], element_path(path, i), position[i]);
    }
  }

  void read_alternative(const Json& json, const std::string& path, Network::Alternative& alternative) {
    if (json.is_string()) return read_words(json.get_ref<const std::string&>(), alternative);
    if (!json.is_object()) json_.fail(path, json, R"(a string or {"text": …, "score": …})");
    for (const char* key : {"text", "score"}) {
      if (!json.contains(key)) json_.fail(join_path(path, key) + ": missing");
    }
    alternative.score = json_.number(json["score"], join_path(path, "score"));
    read_words(json_.text(json["text"], join_path(path, "text")), alternative);
  }

  // The text keeps its own capital letters, whatever the model reads.
  void read_words(const std::string& written, Network::Alternative& alternative) {
    scratch_ = written;
    split_line(scratch_, {}, *name_, line_, words_);
    for (const std::string_view word : words_) {
      if (!alternative.text.empty()) alternative.text += ' ';
      alternative.text += word;
      word_ = word;
      if (options_.lowercase) lowercase(word_);
      const auto id = vocabulary_->find(word_);
      alternative.tokens.push_back(id.value_or(vocabulary_->unknown()));
      alternative.unknown += alternative.tokens.back() == vocabulary_->unknown() ? 1 : 0;
    }
  }

  JsonLine json_;
  const std::string* name_;
  TextOptions options_;
  const Vocabulary* vocabulary_;
  int64_t line_;
  std::string scratch_;
  std::string word_;
  std::vector<std::string_view> words_;
};

}  // namespace

NetworkReader::NetworkReader(const std::string& path, const TextOptions& options,
                             const Vocabulary& vocabulary, const NetworkReaderOptions& limits)
    : reader_(path), options_(options), vocabulary_(&vocabulary), limits_(limits) {}

PromptFeed::Status NetworkReader::take(Prompt& prompt, bool wait) {
  if (!wait && !reader_.line_ready()) return Status::none_yet;
  if (!reader_.next(line_)) return Status::end;
  prompt.number = count_++;
  prompt.network.positions.clear();
  take_line(prompt, limits_.bad_lines, [&] {
    NetworkLine(line_, reader_.name(), options_, *vocabulary_, prompt.number + 1)
        .read(prompt, limits_.max_positions);
  });
  return Status::ready;
}

}  // namespace hsm
