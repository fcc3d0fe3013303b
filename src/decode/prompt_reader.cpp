#include "decode/prompt_reader.h"

#include <utility>

namespace hsm {
namespace {

// Splits prompt.text; `line` and `words` are scratch.
void split_prompt(Prompt& prompt, const TextOptions& options, const Vocabulary& vocabulary,
                  std::string_view name, std::string& line, std::vector<std::string_view>& words) {
  line = prompt.text;  // may be lower-cased
  split_line(line, options, name, prompt.number + 1, words);
  prompt.tokens.clear();
  prompt.unknown.clear();
  for (const std::string_view word : words) {
    const auto id = vocabulary.find(word);
    prompt.tokens.push_back(id.value_or(vocabulary.unknown()));
    if (!id) prompt.unknown.emplace_back(word);
  }
}

}  // namespace

PromptReader::PromptReader(const std::string& path, const TextOptions& options, const Vocabulary& vocabulary)
    : reader_(path), options_(options), vocabulary_(&vocabulary) {}

PromptFeed::Status PromptReader::take(Prompt& prompt, bool wait) {
  if (!wait && !reader_.line_ready()) return Status::none_yet;
  if (!reader_.next(prompt.text)) return Status::end;
  prompt.number = count_++;
  split_prompt(prompt, options_, *vocabulary_, reader_.name(), line_, words_);
  return Status::ready;
}

PromptList::PromptList(std::vector<std::string> texts, const TextOptions& options,
                       const Vocabulary& vocabulary)
    : texts_(std::move(texts)), options_(options), vocabulary_(&vocabulary) {}

PromptFeed::Status PromptList::take(Prompt& prompt, bool /*wait*/) {
  if (next_ == texts_.size()) return Status::end;
  prompt.number = static_cast<int64_t>(next_);
  prompt.text = texts_[next_++];
  std::string line;
  std::vector<std::string_view> words;
  split_prompt(prompt, options_, *vocabulary_, "prompt", line, words);
  return Status::ready;
}

}  // namespace hsm
