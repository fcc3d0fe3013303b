#include "decode/output_formats.h"

#include <cmath>
#include <stdexcept>

namespace hsm {

// ---- text

void TextWriter::append_line_number(const Prompt& prompt) {
  if (!options().numbered) return;
  append_number(prompt.number + 1);
  append('\t');
}

// A block has a line even when there is nothing to say.
void TextWriter::begin(const Prompt& prompt, int64_t hypotheses) {
  if (hypotheses > 0) return;
  append_line_number(prompt);
  append(options().scores ? options().networks ? "\t\t\t\n" : "\t\t\n" : "\n");
}

void TextWriter::hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) {
  append_line_number(prompt);
  if (options().scores) {
    append_number(hypothesis.log_prob);
    append('\t');
    append_number(hypothesis.score);
    append('\t');
  }
  append_words(hypothesis, [this](const std::string& text) { append(text); });
  append('\n');
}

void TextWriter::path(const Prompt& prompt, const NetworkPath& path) {
  append_line_number(prompt);
  if (options().scores) {
    for (const double number : {path.channel, path.log_prob, path.score}) {
      append_number(number);
      append('\t');
    }
  }
  append_path(prompt, path, [this](const std::string& text) { append(text); });
  append('\n');
}

void TextWriter::end(const Prompt& /*prompt*/) {
  end_block();
}

void TextWriter::next_words(const Prompt& prompt, std::span<const Candidate> words) {
  if (words.empty()) {
    append_line_number(prompt);
    append("\t\n");
  }
  for (const Candidate& candidate : words) {
    append_line_number(prompt);
    append(word(candidate.word));
    append('\t');
    append_number(std::exp(candidate.score));
    append('\n');
    pass_on_when_large();
  }
  end_block();
}

void TextWriter::bad_line(const Prompt& prompt) {
  begin(prompt, 0);
  end_block();
}

// ---- jsonl

void JsonLinesWriter::append_prompt(const Prompt& prompt) {
  append('{');
  if (!prompt.id.empty()) {
    append("\"id\":");
    append(prompt.id);
    append(',');
  }
  append("\"prompt\":");
  append_string(prompt.text);
  append(",\"prompt_oov\":[");
  bool first = true;
  for (const std::string& unknown : prompt.unknown) {
    separate(first);
    append_string(unknown);
  }
  append(']');
}

void JsonLinesWriter::append_string(std::string_view text) {
  append('"');
  append_escaped(text);
  append('"');
}

void JsonLinesWriter::separate(bool& first) {
  if (!first) append(',');
  first = false;
  pass_on_when_large();
}

void JsonLinesWriter::begin(const Prompt& prompt, int64_t /*hypotheses*/) {
  append_prompt(prompt);
  append(",\"hypotheses\":[");
  first_hypothesis_ = true;
}

void JsonLinesWriter::hypothesis(const Prompt& /*prompt*/, const Hypothesis& hypothesis) {
  separate(first_hypothesis_);
  append("{\"text\":\"");
  append_words(hypothesis, [this](const std::string& text) { append_escaped(text); });
  append("\",\"logprob\":");
  append_number(hypothesis.log_prob);
  append(",\"score\":");
  append_number(hypothesis.score);
  append(",\"tokens\":[");
  bool first = true;
  for (const int32_t token : hypothesis.tokens) {
    separate(first);
    append_string(word(token));
  }
  append("],\"token_logprobs\":[");
  first = true;
  for (const double log_prob : hypothesis.token_log_probs) {
    separate(first);
    append_number(log_prob);
  }
  append(hypothesis.finished ? "],\"finished\":true}" : "],\"finished\":false}");
}

void JsonLinesWriter::path(const Prompt& prompt, const NetworkPath& path) {
  separate(first_hypothesis_);
  append("{\"text\":\"");
  append_path(prompt, path, [this](const std::string& text) { append_escaped(text); });
  append("\",\"score\":");
  append_number(path.score);
  append(",\"channel\":");
  append_number(path.channel);
  append(",\"logprob\":");
  append_number(path.log_prob);
  append(",\"words\":");
  append_number(path.words);
  append(",\"oov\":");
  append_number(path.unknown);
  append(",\"choices\":[");
  bool first = true;
  for (const int32_t choice : path.choices) {
    separate(first);
    append_number(int64_t{choice});
  }
  append("]}");
}

void JsonLinesWriter::end(const Prompt& /*prompt*/) {
  append("]}\n");
  end_block();
}

void JsonLinesWriter::next_words(const Prompt& prompt, std::span<const Candidate> words) {
  append_prompt(prompt);
  append(",\"next\":[");
  bool first = true;
  for (const Candidate& candidate : words) {
    separate(first);
    append("{\"word\":");
    append_string(word(candidate.word));
    append(",\"probability\":");
    append_number(std::exp(candidate.score));
    append(",\"logprob\":");
    append_number(candidate.score);
    append('}');
  }
  append("]}\n");
  end_block();
}

void JsonLinesWriter::bad_line(const Prompt& prompt) {
  append("{\"line\":");
  append_number(prompt.number + 1);
  append(",\"error\":");
  append_string(prompt.error);
  append("}\n");
  end_block();
}

// ---- moses

void MosesWriter::begin(const Prompt& /*prompt*/, int64_t /*hypotheses*/) {}

void MosesWriter::hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) {
  append_number(prompt.number);
  append(" ||| ");
  append_words(hypothesis, [this](const std::string& text) { append_field(text); });
  append(" ||| logprob= ");
  append_number(hypothesis.log_prob);
  append(" ||| ");
  append_number(hypothesis.score);
  append('\n');
}

void MosesWriter::path(const Prompt& prompt, const NetworkPath& path) {
  append_number(prompt.number);
  append(" ||| ");
  append_path(prompt, path, [this](const std::string& text) { append_field(text); });
  append(" ||| channel= ");
  append_number(path.channel);
  append(" logprob= ");
  append_number(path.log_prob);
  append(" words= ");
  append_number(path.words);
  append(" ||| ");
  append_number(path.score);
  append('\n');
}

// A word must not look like the separator.
void MosesWriter::append_field(std::string_view text) {
  if (text.find("|||") == std::string_view::npos) return append(text);
  for (const char character : text) {
    if (character == '|') {
      append("&#124;");
    } else {
      append(character);
    }
  }
}

void MosesWriter::end(const Prompt& /*prompt*/) {
  end_block();
}

void MosesWriter::next_words(const Prompt& /*prompt*/, std::span<const Candidate> /*words*/) {
  throw std::logic_error("best next words have no moses format");
}

// Numbers tell which inputs have no lines.
void MosesWriter::bad_line(const Prompt& /*prompt*/) {
  end_block();
}

}  // namespace hsm
