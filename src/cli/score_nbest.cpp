#include "cli/score_nbest.h"

#include <unistd.h>

#include <cmath>
#include <span>
#include <sstream>
#include <vector>

#include "cli/bad_line_warnings.h"
#include "cli/output.h"
#include "cli/reading_progress.h"
#include "eval/nbest.h"
#include "eval/prefix_scorer.h"
#include "model/model_directory.h"

namespace hsm::cli {
namespace {

constexpr int64_t kWindow = 4096;  // hypotheses scored together, at most but for the last list

NbestFormat parse_format(const std::string& name) {
  if (name == "kaldi") return NbestFormat::kaldi;
  return name == "moses" ? NbestFormat::moses : NbestFormat::jsonl;
}

NbestOutput output_format(const NbestRun& run, const NbestOptions& options) {
  const std::string name = run.format.empty() ? options.format : run.format;
  if (name == "jsonl") return NbestOutput::jsonl;
  if (name == "costs" && options.format == "kaldi") return NbestOutput::costs;
  if (name == options.format) return name == "kaldi" ? NbestOutput::kaldi : NbestOutput::moses;
  throw UsageError("--format " + name + ": --nbest " + options.format + " has " + options.format +
                   (options.format == "jsonl" ? "" : ", jsonl") +
                   (options.format == "kaldi" ? ", costs" : ""));
}

void check_number(const char* option, double value, bool good, const char* expected) {
  if (good) return;
  std::ostringstream message;
  message << option << " " << value << ": expected " << expected;
  throw UsageError(message.str());
}

void check(const NbestOptions& options) {
  const NbestWeights& weights = options.weights;
  check_number("--lm-weight", weights.lm_weight, weights.lm_weight >= 0 && std::isfinite(weights.lm_weight),
               "a finite number of at least 0");
  check_number("--word-bonus", weights.word_bonus, std::isfinite(weights.word_bonus), "a finite number");
  check_number("--oov-penalty", weights.oov_penalty, std::isfinite(weights.oov_penalty), "a finite number");
  if (!options.channel_costs.empty() && options.format != "kaldi")
    throw UsageError("--channel-costs: for --nbest kaldi; lists of other formats hold their scores");
}

/// Scores the lists of a window together.
void score(std::vector<NbestList>& lists, PrefixScorer& scorer, const std::string& name) {
  std::vector<std::span<const int32_t>> sentences;
  for (const NbestList& list : lists) {
    for (const NbestHypothesis& hypothesis : list.hypotheses) sentences.emplace_back(hypothesis.ids);
  }
  std::vector<double> log_probs(sentences.size());
  scorer.score(sentences, log_probs);
  auto next = log_probs.begin();
  for (NbestList& list : lists) {
    for (NbestHypothesis& hypothesis : list.hypotheses) {
      hypothesis.log_prob = *next++;
      if (std::isfinite(hypothesis.log_prob)) continue;
      throw DataError(name + ":" + std::to_string(list.line) +
                      ": a log-probability is not finite: the model's weights are damaged or its training "
                      "diverged");
    }
  }
}

}  // namespace

void add_nbest_options(CLI::App& app, NbestOptions& options) {
  constexpr const char* kGroup = "N-best lists";
  CLI::Option* nbest =
      app.add_option("--nbest", options.format,
                     "Rescore and reorder n-best lists of this format: kaldi, moses or jsonl")
          ->type_name("FORMAT")
          ->group(kGroup)
          ->check(CLI::IsMember({"kaldi", "moses", "jsonl"}));
  for (const char* other : {"--by", "--context", "--log-base"}) nbest->excludes(app.get_option(other));
  const auto add = [&](const char* name, double& value, const char* type, const char* help) {
    app.add_option(name, value, help)->type_name(type)->group(kGroup)->needs(nbest)->capture_default_str();
  };
  add("--lm-weight", options.weights.lm_weight, "W",
      "Factor of the model's log-probability beside the scores of the list");
  add("--word-bonus", options.weights.word_bonus, "B", "Added to the score for each word");
  add("--oov-penalty", options.weights.oov_penalty, "U",
      "Taken from the score for each word outside the vocabulary");
  app.add_option("--channel-costs", options.channel_costs,
                 "kaldi: \"KEY COST\" lines beside those of the list; costs are scores with the sign turned")
      ->type_name("FILE")
      ->group(kGroup)
      ->needs(nbest);
}

ExitCode run_score_nbest(const NbestRun& run, const NbestOptions& options) {
  check(options);
  const NbestOutput format = output_format(run, options);
  const std::vector<std::string> files =
      run.files.empty() ? std::vector<std::string>{"-"} : expand_paths(run.files);
  if (files.size() > 1 && !options.channel_costs.empty())
    throw UsageError("--channel-costs: belongs to one file, " + std::to_string(files.size()) + " given");
  const SavedModel saved = open_model(run.model.directory());
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  ThreadPool pool(run.runtime.thread_count());
  PrefixScorer scorer(model, saved.vocabulary.end_of_sentence(), pool);

  Output out(run.output);
  ReadingProgress progress(run.output == "-" && ::isatty(STDOUT_FILENO) != 0);
  const NbestReaderOptions reading{
      parse_format(options.format), {saved.config.data.lowercase}, options.channel_costs, run.bad_lines};
  for (const std::string& file : files) {
    BadLineWarnings warnings(file == "-" ? "standard input" : file);
    NbestReader reader(file, reading, saved.vocabulary,
                       [&](const std::string& error) { warnings.take(error); });
    progress.start(file);
    std::vector<NbestList> lists;
    for (bool more = true; more;) {
      lists.clear();
      more = reader.read(lists, kWindow);
      score(lists, scorer, reader.lines().name());
      for (NbestList& list : lists) {
        rescore(list, options.weights);
        out.write(format_nbest(list, format));
      }
      out.flush();
      progress.draw(reader.lines());
    }
    progress.clear();
    warnings.summarise();
    if (reader.lines().line_number() == 0) {
      throw DataError(reader.lines().name() + ": nothing to score, there is no line");
    }
  }
  out.finish();
  return ExitCode::done;
}

}  // namespace hsm::cli
