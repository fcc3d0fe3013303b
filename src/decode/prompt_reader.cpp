#include "decode/prompt_reader.h"

#include <utility>

namespace hsm {

void split_prompt(Prompt& prompt, const TextOptions& options, const Vocabulary& vocabulary,
                  std::string_view name) {
  std::string line = prompt.text;  // may be lower-cased
  std::vector<std::string_view> words;
  split_line(line, options, name, prompt.number + 1, words);
  prompt.tokens.clear();
  prompt.unknown.clear();
  for (const std::string_view word : words) {
    const auto id = vocabulary.find(word);
    prompt.tokens.push_back(id.value_or(vocabulary.unknown()));
    if (!id) prompt.unknown.emplace_back(word);
  }
}

PromptReader::PromptReader(const std::string& path, const TextOptions& options, const Vocabulary& vocabulary,
                           BadLines bad_lines)
    : reader_(path), options_(options), vocabulary_(&vocabulary), bad_lines_(bad_lines) {}

PromptFeed::Status PromptReader::take(Prompt& prompt, bool wait) {
  if (!wait && !reader_.line_ready()) return Status::none_yet;
  if (!reader_.next(prompt.text)) return Status::end;
  prompt.number = count_++;
  take_line(prompt, bad_lines_, [&] { split_prompt(prompt, options_, *vocabulary_, reader_.name()); });
  return Status::ready;
}

PromptList::PromptList(std::vector<std::string> texts, const TextOptions& options,
                       const Vocabulary& vocabulary, BadLines bad_lines)
    : texts_(std::move(texts)), options_(options), vocabulary_(&vocabulary), bad_lines_(bad_lines) {}

PromptFeed::Status PromptList::take(Prompt& prompt, bool /*wait*/) {
  if (next_ == texts_.size()) return Status::end;
  prompt.number = static_cast<int64_t>(next_);
  prompt.text = texts_[next_++];
  take_line(prompt, bad_lines_, [&] { split_prompt(prompt, options_, *vocabulary_, "prompt"); });
  return Status::ready;
}

}  // namespace hsm
