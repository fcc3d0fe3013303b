#include <unistd.h>

#include <memory>
#include <string>
#include <vector>

#include "cli/bad_line_warnings.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "cli/reading_progress.h"
#include "cli/score_nbest.h"
#include "eval/line_scorer.h"
#include "eval/score_report.h"
#include "gpu/scoring_device.h"
#include "model/model_directory.h"
#include "text/lines.h"

namespace hsm::cli {
namespace {

struct Options {
  ModelOption model;
  RuntimeOption runtime;
  std::vector<std::string> files;
  std::string by = "corpus";
  std::string format;    ///< empty: text, or that of n-best lists
  std::string context;   ///< empty: as the model was trained
  std::string log_base;  ///< empty: 10 for text, e for jsonl
  std::string output = "-";
  BadLines bad_lines = BadLines::error;
  NbestOptions nbest;
};

Context parse_context(const std::string& name) {
  return name == "sentence" ? Context::sentence : Context::stream;
}

ScoreUnit parse_unit(const std::string& name) {
  if (name == "corpus") return ScoreUnit::corpus;
  return name == "sentence" ? ScoreUnit::sentence : ScoreUnit::word;
}

LogBase parse_log_base(const std::string& name, ScoreFormat format) {
  if (name.empty()) return format == ScoreFormat::text ? LogBase::ten : LogBase::e;
  if (name == "e") return LogBase::e;
  return name == "2" ? LogBase::two : LogBase::ten;
}

ReportOptions report_options(const Options& options, Context context, bool several_files) {
  ReportOptions report;
  report.by = parse_unit(options.by);
  report.format = options.format == "jsonl" ? ScoreFormat::jsonl : ScoreFormat::text;
  report.base = parse_log_base(options.log_base, report.format);
  report.context = context;
  report.several_files = several_files;
  return report;
}

CorpusScore score_file(const std::string& path, LineScorer& scorer, const ScoreReport& report, Output& out,
                       ReadingProgress& progress) {
  LineReader reader(path);
  BadLineWarnings warnings(reader.name());
  progress.start(path);
  const CorpusScore score = scorer.score(
      reader,
      [&](const ScoredLine& line) {
        if (!line.error.empty()) warnings.take(line.error);
        out.write(report.line(reader.name(), line));
      },
      [&] {
        out.flush();
        progress.draw(reader);
      });
  progress.clear();
  warnings.summarise();
  if (score.sentences == 0 && score.malformed == 0) {
    throw DataError(reader.name() + ": nothing to score, there is no line" +
                    (reader.line_number() > 0 ? " that isn't blank (the model skips blank lines)" : ""));
  }
  out.write(report.summary(reader.name(), score));
  return score;
}

ExitCode run_score(const Options& options) {
  if (!options.nbest.format.empty()) {
    if (options.runtime.device.value_or("auto").starts_with("cuda")) {
      throw UsageError("--device " + *options.runtime.device + ": lists are rescored on the CPU");
    }
    return run_score_nbest(
        {options.model, options.runtime, options.files, options.format, options.output, options.bad_lines},
        options.nbest);
  }
  if (!options.format.empty() && options.format != "text" && options.format != "jsonl")
    throw UsageError("--format " + options.format + ": text is scored as text or jsonl");
  const std::vector<std::string> files =
      options.files.empty() ? std::vector<std::string>{"-"} : expand_paths(options.files);
  const SavedModel saved = open_model(options.model.directory());
  ThreadPool pool(options.runtime.thread_count());
  const auto text_scorer = make_text_scorer(saved, options.runtime.device.value_or("auto"), pool);

  LineOptions lines;
  lines.context = parse_context(options.context.empty() ? saved.config.train.context : options.context);
  lines.text.lowercase = saved.config.data.lowercase;
  lines.skip_blank_lines = saved.config.data.skip_blank_lines;
  lines.bad_lines = options.bad_lines;
  LineScorer scorer(*text_scorer, saved.vocabulary, lines);
  const ScoreReport report(report_options(options, lines.context, files.size() > 1));

  Output out(options.output);
  ReadingProgress progress(options.by != "corpus" && options.output == "-" && ::isatty(STDOUT_FILENO) != 0);
  out.write(report.header());
  CorpusScore total;
  for (const std::string& file : files) total += score_file(file, scorer, report, out, progress);
  out.write(report.total(total));
  out.finish();
  return ExitCode::done;
}

}  // namespace

Command add_score(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("score", "Log-probabilities and perplexity of text");
  add_model(*command, options->model);
  command
      ->add_option("files", options->files,
                   "Text, plain or .gz or .zst; \"-\", or none: standard input, answered line by line")
      ->type_name("FILE");
  command->add_option("--by", options->by, "corpus, sentence or word")
      ->type_name("UNIT")
      ->check(CLI::IsMember({"corpus", "sentence", "word"}))
      ->capture_default_str();
  command
      ->add_option("--format", options->format,
                   "text (default) or jsonl; for --nbest that of the lists (default), jsonl, or costs: of "
                   "the model alone, for kaldi")
      ->type_name("FORMAT")
      ->check(CLI::IsMember({"text", "jsonl", "kaldi", "moses", "costs"}));
  add_bad_lines(*command, options->bad_lines);
  command
      ->add_option("--context", options->context,
                   "stream (state goes on from line to line) or sentence; default: as the model was trained")
      ->type_name("CONTEXT")
      ->check(CLI::IsMember({"stream", "sentence"}));
  command->add_option("--log-base", options->log_base, "e, 2 or 10; default: 10 for text, e for jsonl")
      ->type_name("BASE")
      ->check(CLI::IsMember({"e", "2", "10"}));
  add_nbest_options(*command, options->nbest);
  add_output(*command, options->output);
  add_runtime(*command, options->runtime);
  add_log_level(*command);
  command->footer(
      "Examples:\n"
      "  hsm score --model models/quickstart test.txt\n"
      "  hsm score --model models/quickstart --by sentence --format jsonl a.txt b.txt.gz\n"
      "  echo 'in the beginning' | hsm score --model models/quickstart --by word --context sentence\n"
      "  hsm score --model models/quickstart --nbest moses --lm-weight 0.5 lists.txt > rescored.txt\n"
      "Formats and definitions: docs/scoring.md");
  return {command, [options] { return run_score(*options); }};
}

}  // namespace hsm::cli
