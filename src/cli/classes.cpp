#include <spdlog/fmt/fmt.h>

#include <cmath>
#include <filesystem>
#include <functional>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/error.h"
#include "base/file.h"
#include "base/signals.h"
#include "base/size.h"
#include "classes/class_file.h"
#include "classes/step_cost.h"
#include "cli/class_summary.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "train/reading_report.h"
#include "train/training_data.h"

namespace hsm::cli {
namespace {

using Json = nlohmann::ordered_json;

struct Options {
  ConfigOption config;
  RuntimeOption runtime;
  std::string format = "text";
  std::string output;
};

std::vector<std::string> words_of(const ClusterSummary& cluster, const Vocabulary& vocabulary) {
  std::vector<std::string> words;
  for (const int32_t id : cluster.frequent_words) words.push_back(vocabulary.word(id));
  return words;
}

double share(const ClusterSummary& cluster, const ClassSummary& summary) {
  return summary.tokens == 0 ? 0 : static_cast<double>(cluster.tokens) / static_cast<double>(summary.tokens);
}

/// What is known of classes with their text and training step.
struct Worth {
  double log_likelihood = 0;     // of a token under a class bigram model
  double nanoseconds_token = 0;  // expected_step_cost
};

std::string as_text(const ClassSummary& summary, const Worth& worth, const Vocabulary& vocabulary) {
  std::string text =
      "vocabulary   " + plural(summary.words, "word") + " from " + plural(summary.tokens, "token") + "\n";
  text += "classes      " + describe_clusters(summary) + "\n";
  text += "shortlist    " + describe_shortlist(summary) + "\n";
  if (summary.mean_scores) {
    text += fmt::format("work         {:.1f} scores for the average word, of {} with a full softmax\n",
                        *summary.mean_scores, format_count(summary.words));
  }
  text += fmt::format("cost         {:.1f} µs of one core for a training token at the head, expected\n",
                      worth.nanoseconds_token / 1000);
  text += fmt::format(
      "likelihood   {:.4f} (natural log) for a token by a class bigram model, perplexity {:.1f}\n",
      worth.log_likelihood, std::exp(-worth.log_likelihood));
  text += fmt::format("\n{:>9} {:>9} {:>8}  {}\n", "cluster", "words", "tokens", "most frequent words");
  const auto row = [&](const std::string& name, const ClusterSummary& cluster) {
    const bool more = cluster.words > static_cast<int64_t>(cluster.frequent_words.size());
    text += fmt::format("{:>9} {:>9} {:>6.2f} %  {}{}\n", name, format_count(cluster.words),
                        100 * share(cluster, summary), fmt::join(words_of(cluster, vocabulary), " "),
                        more ? " …" : "");
  };
  row("shortlist", summary.shortlist);
  for (size_t c = 0; c < summary.clusters.size(); ++c) row(std::to_string(c), summary.clusters[c]);
  return text;
}

std::string as_json(const ClassSummary& summary, const Worth& worth, const Vocabulary& vocabulary) {
  std::string lines;
  const auto row = [&](const Json& name, const ClusterSummary& cluster) {
    const Json json{{"cluster", name},
                    {"words", cluster.words},
                    {"token_share", share(cluster, summary)},
                    {"frequent_words", words_of(cluster, vocabulary)}};
    lines += json.dump() + "\n";
  };
  row("shortlist", summary.shortlist);
  for (size_t c = 0; c < summary.clusters.size(); ++c) row(c, summary.clusters[c]);
  const Json last{{"words", summary.words},
                  {"tokens", summary.tokens},
                  {"clusters", summary.clusters.size()},
                  {"shortlist", summary.shortlist.words},
                  {"smallest_cluster", summary.smallest},
                  {"largest_cluster", summary.largest},
                  {"mean_cluster", summary.mean},
                  {"root_token_share", summary.root_share ? Json(*summary.root_share) : Json(nullptr)},
                  {"mean_scores", summary.mean_scores ? Json(*summary.mean_scores) : Json(nullptr)},
                  {"expected_microseconds", worth.nanoseconds_token / 1000},
                  {"log_likelihood", worth.log_likelihood}};
  return lines + last.dump() + "\n";
}

// Whether a path leads to a file that is open already, in this process or another.
bool is_open_file(const std::filesystem::path& path) {
  const std::string absolute = std::filesystem::absolute(path).lexically_normal().string();
  return absolute.starts_with("/dev/fd/") || absolute.starts_with("/dev/std") ||
         absolute.starts_with("/proc/");
}

/// Where the classes go. Opened before the work begins, so that a file that can't be written is known then;
/// what a regular file held stays until the new classes are whole.
class ClassesOutput {
 public:
  explicit ClassesOutput(const std::string& path) {
    std::error_code ignored;
    const bool is_new =
        std::filesystem::symlink_status(path, ignored).type() == std::filesystem::file_type::not_found;
    const bool is_file = std::filesystem::is_regular_file(path, ignored);
    if (path != "-" && !is_open_file(path) && (is_new || is_file)) {
      // A link stays one.
      file_.emplace(is_file ? std::filesystem::canonical(path) : std::filesystem::path(path));
    } else {
      stream_.emplace(path);
    }
  }

  void write(std::string_view classes) {
    if (stream_) {
      stream_->write(classes);
      stream_->finish();
    } else {
      file_->write(classes);
      file_->commit();
    }
  }

 private:
  std::optional<Output> stream_;
  std::optional<AtomicFile> file_;
};

std::string summarise(const Options& options, const Config& config, const TextClasses& text,
                      const std::function<bool()>& stop) {
  const ClassSummary summary = summarise_classes(make_layout(text.classes), text.vocabulary);
  const StepShape step = step_shape(config, text.vocabulary);
  const double cost = expected_step_cost(step, text.vocabulary, text.classes);
  const Worth worth{text.log_likelihood(config, stop), cost / static_cast<double>(step.tokens)};
  return options.format == "text" ? as_text(summary, worth, text.vocabulary)
                                  : as_json(summary, worth, text.vocabulary);
}

ExitCode run_classes(const Options& options) {
  const SignalRequests signals;
  const auto stop = [&signals] { return signals.stop_requested(); };
  Config config = options.config.load();
  options.runtime.apply(config.runtime);
  const bool classes_alone = options.output == "-";
  std::optional<ClassesOutput> output;
  if (!options.output.empty()) output.emplace(options.output);
  try {
    const TextClasses text = read_classes(config, stop);
    const std::string summary = classes_alone ? "" : summarise(options, config, text, stop);
    if (output) output->write(format_classes(text.vocabulary, text.classes));
    if (classes_alone) return ExitCode::done;
    Output out("-");
    out.write(summary);
    out.finish();
  } catch (const ReadingStopped&) {
    return ExitCode::interrupted;
  }
  return ExitCode::done;
}

}  // namespace

Command add_classes(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command = app.add_subcommand("classes", "Build and show the word classes alone");
  add_config(*command, options->config);
  add_format(*command, options->format, {"text", "jsonl"});
  command
      ->add_option(
          "-o,--output", options->output,
          "Write every word and its class to this file as well, for classes.file; -: to standard output "
          "instead of the summary")
      ->type_name("FILE");
  add_threads(*command, options->runtime);
  add_log_level(*command);
  command->footer(
      "Reads the training text and makes the classes that hsm train would make. A copy of the text as "
      "numbers\n"
      "lies in data.cache, or where TMPDIR says, while it works. SIGINT and SIGTERM end it with status 75.\n"
      "\n"
      "Examples:\n"
      "  hsm classes --config configs/quickstart.json\n"
      "  hsm classes --config configs/novels.json --set classes.shortlist=1000 --format jsonl\n"
      "  hsm classes --config configs/ptb-small.json --output classes.txt");
  return {command, [options, command] {
            if (options->output.empty() && command->count("--output") > 0) {
              throw UsageError("--output: \"\" given, expected a path or -");
            }
            if (options->output == "-" && command->count("--format") > 0) {
              throw UsageError("--format: says how the summary is written, which --output - leaves out");
            }
            return run_classes(*options);
          }};
}

}  // namespace hsm::cli
