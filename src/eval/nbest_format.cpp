#include <algorithm>
#include <charconv>

#include "config/json_text.h"
#include "eval/nbest.h"

namespace hsm {
namespace {

// The shortest decimal that reads back as the same number.
void append_number(std::string& text, double value) {
  char digits[32];
  text.append(digits, std::to_chars(digits, digits + sizeof digits, value).ptr);
}

std::string kaldi_text(const NbestList& list) {
  std::string text;
  for (const NbestHypothesis& hypothesis : list.hypotheses) {
    text += hypothesis.key;
    if (!hypothesis.text.empty()) text += ' ' + hypothesis.text;
    text += '\n';
  }
  return text;
}

std::string costs_text(const NbestList& list) {
  std::vector<const NbestHypothesis*> as_read(list.hypotheses.size());
  for (const NbestHypothesis& hypothesis : list.hypotheses) {
    as_read[static_cast<size_t>(hypothesis.place)] = &hypothesis;
  }
  std::string text;
  for (const NbestHypothesis* hypothesis : as_read) {
    text += hypothesis->key + ' ';
    append_number(text, -hypothesis->log_prob);
    text += '\n';
  }
  return text;
}

void append_escaped(std::string& text, const std::string& words) {
  if (words.find("|||") == std::string::npos) {
    text += words;
    return;
  }
  for (const char character : words) {
    if (character == '|') {
      text += "&#124;";
    } else {
      text += character;
    }
  }
}

std::string moses_text(const NbestList& list) {
  std::string text;
  for (const NbestHypothesis& hypothesis : list.hypotheses) {
    text += list.id + " ||| ";
    append_escaped(text, hypothesis.text);
    text += " ||| " + hypothesis.features + (hypothesis.features.empty() ? "" : " ") + "channel= ";
    append_number(text, hypothesis.channel);
    text += " logprob= ";
    append_number(text, hypothesis.log_prob);
    text += " words= " + std::to_string(hypothesis.words()) + " ||| ";
    append_number(text, hypothesis.score);
    text += hypothesis.rest + '\n';
  }
  return text;
}

std::string json_text(const NbestList& list) {
  OrderedJson object;
  if (!list.error.empty()) {
    object["line"] = list.line;
    object["error"] = list.error;
    return object.dump() + '\n';
  }
  if (!list.json_id.empty()) object["id"] = OrderedJson::parse(list.json_id);
  OrderedJson hypotheses = OrderedJson::array();
  for (const NbestHypothesis& hypothesis : list.hypotheses) {
    hypotheses.push_back({{"text", hypothesis.text},
                          {"score", hypothesis.score},
                          {"channel", hypothesis.channel},
                          {"logprob", hypothesis.log_prob},
                          {"words", hypothesis.words()},
                          {"oov", hypothesis.unknown},
                          {"place", hypothesis.place}});
  }
  object["hypotheses"] = std::move(hypotheses);
  return object.dump() + '\n';
}

}  // namespace

std::string format_nbest(const NbestList& list, NbestOutput output) {
  switch (output) {
    case NbestOutput::kaldi:
      return kaldi_text(list);
    case NbestOutput::moses:
      return moses_text(list);
    case NbestOutput::costs:
      return costs_text(list);
    case NbestOutput::jsonl:
      break;
  }
  return json_text(list);
}

}  // namespace hsm
