#include "eval/score_report.h"

#include <cmath>
#include <cstdio>
#include <nlohmann/json.hpp>
#include <numbers>
#include <vector>

namespace hsm {
namespace {

using Json = nlohmann::ordered_json;

const char* base_name(LogBase base) {
  switch (base) {
    case LogBase::two:
      return "2";
    case LogBase::ten:
      return "10";
    case LogBase::e:
      break;
  }
  return "e";
}

double natural_log_of(LogBase base) {
  switch (base) {
    case LogBase::two:
      return std::numbers::ln2;
    case LogBase::ten:
      return std::numbers::ln10;
    case LogBase::e:
      break;
  }
  return 1;
}

std::string print(const char* format, double value) {
  char buffer[64];
  std::snprintf(buffer, sizeof buffer, format, value);
  return buffer;
}

// Adding zero turns -0 into 0.
std::string print_log(double value) {
  return print("%.6f", value + 0.0);
}

std::string print_perplexity(double value) {
  return std::isnan(value) ? "undefined" : print("%.7g", value);
}

std::string count(int64_t number) {
  return std::to_string(number);
}

/// Words of the text proper.
int64_t words_without_end(const CorpusScore& score) {
  return score.words - score.sentences;
}

// A file name may hold any bytes; text was checked when it was read.
std::string dump(const Json& object) {
  return object.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

ScoreReport::ScoreReport(const ReportOptions& options)
    : options_(options), unit_(natural_log_of(options.base)) {}

double ScoreReport::in_base(double log_prob) const {
  return log_prob / unit_;
}

std::string ScoreReport::header() const {
  if (options_.format == ScoreFormat::jsonl) return {};
  std::string text = std::string("# log base ") + base_name(options_.base) + ", context " +
                     (options_.context == Context::stream ? "stream" : "sentence") + "\n";
  const std::string file = options_.several_files ? "file\t" : "";
  if (options_.by == ScoreUnit::sentence) text += "# " + file + "line\twords\toovs\tlogprob\tppl\n";
  if (options_.by == ScoreUnit::word) text += "# " + file + "line\tword\tlogprob\troot\tleaf\toov\n";
  return text;
}

std::string ScoreReport::line(std::string_view file, const ScoredLine& line) const {
  if (options_.by == ScoreUnit::corpus) return {};
  if (options_.format == ScoreFormat::jsonl) return json_line(file, line);
  return options_.by == ScoreUnit::sentence ? text_line(file, line) : text_words(file, line);
}

std::string ScoreReport::summary(std::string_view file, const CorpusScore& score) const {
  if (options_.format == ScoreFormat::jsonl) return json_summary(options_.several_files ? file : "", score);
  return text_summary("file " + std::string(file), score);
}

std::string ScoreReport::total(const CorpusScore& score) const {
  if (!options_.several_files) return {};
  if (options_.format == ScoreFormat::jsonl) return json_summary("", score);
  return text_summary("total", score);
}

std::string ScoreReport::text_line(std::string_view file, const ScoredLine& line) const {
  std::string text;
  if (options_.several_files) text.append(file).append("\t");
  if (!line.error.empty()) return text + count(line.number) + "\t\t\t\t\n";
  return text + count(line.number) + "\t" + count(words_without_end(line.sums)) + "\t" +
         count(line.sums.oov) + "\t" + print_log(in_base(line.sums.log_prob)) + "\t" +
         print_perplexity(line.sums.perplexity()) + "\n";
}

std::string ScoreReport::text_words(std::string_view file, const ScoredLine& line) const {
  std::string prefix;
  if (options_.several_files) prefix.append(file).append("\t");
  prefix += count(line.number) + "\t";
  if (!line.error.empty()) return prefix + "\t\t\t\t\n";
  std::string text;
  for (size_t place = 0; place < line.scores.size(); ++place) {
    const TokenScore& score = line.scores[place];
    text.append(prefix).append(line.text_of(place)).append("\t");
    text += print_log(in_base(score.log_prob())) + "\t" +
            print_log(in_base(static_cast<double>(score.root))) + "\t" +
            print_log(in_base(static_cast<double>(score.leaf))) + "\t" + (line.is_oov(place) ? "1\n" : "0\n");
  }
  return text;
}

// The first two lines are those of SRILM's ngram -ppl, so that scripts made for it find their numbers.
std::string ScoreReport::text_summary(std::string_view label, const CorpusScore& score) const {
  const std::string known = count(score.words - score.oov);
  return std::string(label) + ": " + count(score.sentences) + " sentences, " +
         count(words_without_end(score)) + " words, " + count(score.oov) +
         " OOVs\n0 zeroprobs, logprob= " + print_log(in_base(score.log_prob)) +
         " ppl= " + print_perplexity(score.perplexity()) +
         " ppl1= " + print_perplexity(score.perplexity_per_word()) +
         "\nwithout OOVs: logprob= " + print_log(in_base(score.log_prob - score.log_prob_oov)) +
         " ppl= " + print_perplexity(score.perplexity_without_oov()) + " over " + known + " predictions\n" +
         (score.malformed == 0 ? "" : "without " + count(score.malformed) + " malformed lines\n");
}

std::string ScoreReport::json_line(std::string_view file, const ScoredLine& line) const {
  Json object;
  if (options_.several_files) object["file"] = file;
  object["line"] = line.number;
  if (!line.error.empty()) {
    object["error"] = line.error;
    return dump(object);
  }
  if (options_.by == ScoreUnit::sentence) {
    object["words"] = line.sums.words;
    object["oov"] = line.sums.oov;
    object["logprob"] = in_base(line.sums.log_prob);
  } else {
    Json tokens = Json::array();
    Json log_probs = Json::array();
    Json roots = Json::array();
    Json oov = Json::array();
    for (size_t place = 0; place < line.scores.size(); ++place) {
      tokens.push_back(line.text_of(place));
      log_probs.push_back(in_base(line.scores[place].log_prob()));
      roots.push_back(in_base(static_cast<double>(line.scores[place].root)));
      if (line.is_oov(place)) oov.push_back(place);
    }
    object["tokens"] = std::move(tokens);
    object["logprobs"] = std::move(log_probs);
    object["root_logprobs"] = std::move(roots);
    object["oov"] = std::move(oov);
  }
  if (options_.base != LogBase::e) object["log_base"] = base_name(options_.base);
  return dump(object);
}

std::string ScoreReport::json_summary(std::string_view file, const CorpusScore& score) const {
  Json object;
  if (!file.empty()) object["file"] = file;
  object["words"] = score.words;
  object["oov"] = score.oov;
  object["sentences"] = score.sentences;
  if (score.malformed > 0) object["malformed"] = score.malformed;
  object["logprob"] = in_base(score.log_prob);
  object["perplexity"] = score.perplexity();
  object["perplexity_without_oov"] = score.perplexity_without_oov();
  if (options_.base != LogBase::e) object["log_base"] = base_name(options_.base);
  return dump(object);
}

}  // namespace hsm
