#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdio>
#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "base/size.h"
#include "base/utf8.h"
#include "cli/command.h"
#include "cli/options.h"
#include "cli/output.h"
#include "decode/decoder.h"
#include "decode/model_scorer.h"
#include "decode/output.h"
#include "decode/prompt_reader.h"
#include "decode/sampling.h"
#include "model/model_directory.h"
#include "text/lowercase.h"

namespace hsm::cli {
namespace {

struct Options {
  ModelOption model;
  RuntimeOption runtime;
  std::string input = "-";
  std::vector<std::string> prompts;
  std::string format = "text";
  std::string output = "-";
  bool scores = false;
  bool stats = false;

  // What is not given comes from the model's configuration, section "decode".
  std::optional<int64_t> beam;
  std::optional<int64_t> nbest;
  std::optional<int64_t> min_length;
  std::optional<int64_t> max_length;
  std::optional<double> length_penalty;
  std::optional<uint64_t> memory_budget;
  int64_t batch = 0;
  std::vector<std::string> suppress{std::string(kUnknownWord)};

  std::optional<int64_t> sample;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;

  std::optional<int64_t> next;
  std::string prefix;
  bool exclude_seen = false;
};

// ---- options to settings

LengthOptions length_options(const Options& options, const DecodeConfig& defaults) {
  LengthOptions length;
  length.max_length = options.max_length.value_or(
      options.min_length ? std::max(defaults.max_length, *options.min_length) : defaults.max_length);
  length.min_length = options.min_length.value_or(std::min(defaults.min_length, length.max_length));
  length.length_penalty = options.length_penalty.value_or(defaults.length_penalty);
  return length;
}

BeamOptions beam_options(const Options& options, const DecodeConfig& defaults) {
  BeamOptions beam;
  beam.beam = options.beam.value_or(defaults.beam);
  beam.nbest = options.nbest.value_or(std::min(defaults.nbest, beam.beam));
  beam.length = length_options(options, defaults);
  beam.token_scores = options.format == "jsonl";
  return beam;
}

SamplingOptions sampling_options(const Options& options, const DecodeConfig& defaults) {
  SamplingOptions sampling;
  sampling.samples = *options.sample;
  sampling.temperature = options.temperature;
  sampling.top_k = options.top_k;
  sampling.top_p = options.top_p;
  sampling.seed = options.seed;
  sampling.length = length_options(options, defaults);
  return sampling;
}

std::vector<std::string> split_words(const std::string& text) {
  constexpr const char* kSpace = " \t\n\v\f\r";
  std::vector<std::string> words;
  for (size_t from = text.find_first_not_of(kSpace); from != std::string::npos;) {
    const size_t to = std::min(text.find_first_of(kSpace, from), text.size());
    words.push_back(text.substr(from, to - from));
    from = text.find_first_not_of(kSpace, to);
  }
  return words;
}

/// A word or a prefix of the command line as the model's text has it.
std::string as_in_text(std::string text, const char* option, const SavedModel& model) {
  if (find_malformed_utf8(text))
    throw UsageError(std::string(option) + " " + quote(text) + ": not well-formed UTF-8");
  if (model.config.data.lowercase) lowercase(text);
  return text;
}

std::vector<int32_t> suppressed_words(const Options& options, const SavedModel& model) {
  std::vector<int32_t> ids;
  for (const std::string& list : options.suppress) {
    for (const std::string& word : split_words(list)) {
      const auto id = model.vocabulary.find(as_in_text(word, "--suppress", model));
      if (!id) throw UsageError("--suppress " + quote(word) + ": not a word of the model's vocabulary");
      ids.push_back(*id);
    }
  }
  std::sort(ids.begin(), ids.end());
  return ids;
}

std::function<bool(int32_t)> allowed_words(const Options& options, const SavedModel& model) {
  return [&vocabulary = model.vocabulary, suppressed = suppressed_words(options, model),
          prefix = as_in_text(options.prefix, "--prefix", model)](int32_t word) {
    return vocabulary.word(word).starts_with(prefix) &&
           !std::binary_search(suppressed.begin(), suppressed.end(), word);
  };
}

DecoderSettings settings(const Options& options, const SavedModel& model) {
  const DecodeConfig& defaults = model.config.decode;
  DecoderSettings settings;
  if (options.next) {
    settings.task = NextWordOptions{*options.next, options.exclude_seen};
  } else if (options.sample) {
    settings.task = sampling_options(options, defaults);
  } else {
    settings.task = beam_options(options, defaults);
  }
  settings.memory_budget = options.memory_budget.value_or(defaults.memory_budget);
  settings.batch = options.batch;
  settings.allowed = allowed_words(options, model);
  return settings;
}

int64_t most_lines_in_block(const DecoderSettings& settings) {
  if (const auto* beam = std::get_if<BeamOptions>(&settings.task)) return beam->nbest;
  if (const auto* sampling = std::get_if<SamplingOptions>(&settings.task)) return sampling->samples;
  return std::get<NextWordOptions>(settings.task).count;
}

OutputOptions output_options(const Options& options, const DecoderSettings& settings) {
  OutputOptions output;
  output.format = options.format == "text"    ? OutputFormat::text
                  : options.format == "jsonl" ? OutputFormat::jsonl
                                              : OutputFormat::moses;
  output.scores = options.scores;
  output.numbered = most_lines_in_block(settings) > 1;
  return output;
}

// ---- what is told on standard error

/// Passes results on, and warns of what a reader of plain text output couldn't see.
class WarningSink : public ResultSink {
 public:
  WarningSink(ResultSink& sink, std::string input) : sink_(&sink), input_(std::move(input)) {}

  void begin(const Prompt& prompt, int64_t hypotheses) override {
    warn_of_unknown_words(prompt);
    if (hypotheses == 0)
      spdlog::warn("{}:{}: no continuation has a probability above 0", input_, prompt.number + 1);
    sink_->begin(prompt, hypotheses);
  }
  void hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) override {
    sink_->hypothesis(prompt, hypothesis);
  }
  void end(const Prompt& prompt) override { sink_->end(prompt); }
  void next_words(const Prompt& prompt, std::span<const Candidate> words) override {
    warn_of_unknown_words(prompt);
    if (words.empty()) spdlog::warn("{}:{}: no next word fits", input_, prompt.number + 1);
    sink_->next_words(prompt, words);
  }
  /// After the last result.
  void summarise() const {
    if (unknown_lines_ > kShownLines) {
      spdlog::warn("{}: {} lines hold {} words that are not in the vocabulary, read as {}", input_,
                   format_count(unknown_lines_), format_count(unknown_words_), kUnknownWord);
    }
  }

 private:
  static constexpr int64_t kShownLines = 10;

  void warn_of_unknown_words(const Prompt& prompt) {
    if (prompt.unknown.empty()) return;
    unknown_words_ += static_cast<int64_t>(prompt.unknown.size());
    if (++unknown_lines_ > kShownLines) return;
    std::string words;
    for (const std::string& word : prompt.unknown) words += (words.empty() ? "" : ", ") + quote(word);
    spdlog::warn("{}:{}: not in the vocabulary, read as {}: {}", input_, prompt.number + 1, kUnknownWord,
                 words);
  }

  ResultSink* sink_;
  std::string input_;
  int64_t unknown_lines_ = 0;
  int64_t unknown_words_ = 0;
};

/// Bytes of a loaded model: mapped weights, and copies of them in another order.
uint64_t model_bytes(const SavedModel& saved, const InferenceModel& model) {
  uint64_t bytes = model.owned_bytes();
  for (const TensorRef& tensor : saved.weights.tensors()) bytes += tensor.bytes();
  return bytes;
}

void print_stats(const Decoder& decoder, uint64_t budget, uint64_t model, double seconds) {
  const DecodeStats stats = decoder.stats();
  const MemoryPlan& plan = decoder.plan();
  const double share = stats.possible_expansions == 0 ? 0
                                                      : 100 * static_cast<double>(stats.expansions) /
                                                            static_cast<double>(stats.possible_expansions);
  fmt::print(stderr, "inputs           {}, up to {} together\n", format_count(stats.inputs), plan.inputs);
  fmt::print(stderr, "steps            {}, {} rows\n", format_count(stats.steps), format_count(stats.rows));
  fmt::print(stderr, "tokens           {}\n", format_count(stats.tokens));
  fmt::print(stderr, "seconds          {:.3f}, {:.0f} rows/s\n", seconds,
             seconds > 0 ? static_cast<double>(stats.rows) / seconds : 0.0);
  fmt::print(stderr, "expansions       {} of {} clusters x hypotheses ({:.2f} %), up to {} at a time\n",
             format_count(stats.expansions), format_count(stats.possible_expansions), share, plan.expansions);
  if (stats.peak_nodes > 0) {
    fmt::print(stderr, "hypothesis pool  {} nodes at most in one input\n", format_count(stats.peak_nodes));
  }
  fmt::print(stderr, "search memory    {} of a budget of {}: {}\n", format_size(plan.bytes),
             format_size(budget), describe_parts(plan.parts));
  fmt::print(stderr, "model memory     {}\n", format_size(model));
  fmt::print(stderr, "together         {}\n", format_size(plan.bytes + model));
}

// ---- the command

void refuse_what_does_not_fit(const Options& options) {
  if (options.runtime.device.value_or("auto").starts_with("cuda")) {
    throw UsageError("--device " + *options.runtime.device + ": decoding runs on the CPU");
  }
  if (options.next && options.format == "moses")
    throw UsageError("--format moses: --next has text and jsonl");
}

ExitCode run_decode(const Options& options) {
  refuse_what_does_not_fit(options);
  const SavedModel saved = open_model(options.model.directory());
  const DecoderSettings chosen = settings(options, saved);
  const InferenceModel model(saved.shape, saved.layout, saved.weight_view());
  const ModelScorer scorer(model, saved.vocabulary.end_of_sentence());
  ThreadPool pool(options.runtime.thread_count());
  Decoder decoder(scorer, chosen, pool);

  const TextOptions text{saved.config.data.lowercase};
  std::unique_ptr<PromptFeed> feed;
  std::string name = "--prompt";
  if (options.prompts.empty()) {
    auto reader = std::make_unique<PromptReader>(options.input, text, saved.vocabulary);
    name = reader->name();
    feed = std::move(reader);
  } else {
    feed = std::make_unique<PromptList>(options.prompts, text, saved.vocabulary);
  }
  if (options.prompts.empty() && options.input == "-" && ::isatty(STDIN_FILENO) != 0) {
    spdlog::info("reading prompts, one a line; an empty one starts from nothing; end with Ctrl-D");
  }

  Output out(options.output);
  const auto writer = make_result_writer(saved.vocabulary, output_options(options, chosen),
                                         [&](std::string_view piece, bool block_complete) {
                                           out.write(piece);
                                           if (block_complete) out.flush();
                                         });
  WarningSink sink(*writer, name);
  const auto start = std::chrono::steady_clock::now();
  decoder.run(*feed, sink);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  out.finish();
  sink.summarise();
  if (decoder.stats().inputs == 0)
    spdlog::warn("{}: no line to decode (an empty line is an empty prompt)", name);
  if (options.stats) print_stats(decoder, chosen.memory_budget, model_bytes(saved, model), seconds.count());
  return ExitCode::done;
}

// ---- the options

template <class T>
CLI::Option* add_given(CLI::App& app, const std::string& name, std::optional<T>& value,
                       const std::string& help) {
  return app.add_option_function<T>(
      name, [&value](const T& given) { value = given; }, help);
}

struct SearchFlags {
  std::vector<CLI::Option*> beam;    ///< of beam search alone
  std::vector<CLI::Option*> length;  ///< of whole outputs: beam search and samples
};

SearchFlags add_beam_options(CLI::App& app, Options& options) {
  constexpr const char* kGroup = "Beam search";
  SearchFlags flags;
  flags.beam.push_back(add_given(app, "-b,--beam", options.beam, "Hypotheses that live on at each step")
                           ->type_name("N")
                           ->group(kGroup)
                           ->check(CLI::Range(int64_t{1}, kWidestBeam)));
  flags.beam.push_back(add_given(app, "-n,--nbest", options.nbest, "Outputs of each input, at most the beam")
                           ->type_name("N")
                           ->group(kGroup)
                           ->check(CLI::Range(int64_t{1}, kWidestBeam)));
  flags.length.push_back(add_given(app, "--min-length", options.min_length, "Words before an output may end")
                             ->type_name("N")
                             ->group(kGroup)
                             ->check(CLI::Range(int64_t{0}, kLongestOutput)));
  flags.length.push_back(add_given(app, "--max-length", options.max_length,
                                   "Words, the end symbol counted, after which an output is cut")
                             ->type_name("N")
                             ->group(kGroup)
                             ->check(CLI::Range(int64_t{0}, kLongestOutput)));
  flags.length.push_back(add_given(app, "--length-penalty", options.length_penalty,
                                   "Exponent A: the log-probability is divided by ((5 + length) / 6)^A")
                             ->type_name("A")
                             ->group(kGroup));
  return flags;
}

CLI::Option* add_sampling_options(CLI::App& app, Options& options) {
  constexpr const char* kGroup = "Sampling";
  CLI::Option* sample =
      add_given(app, "--sample", options.sample, "Draw N outputs at random instead of searching")
          ->type_name("N")
          ->group(kGroup)
          ->check(CLI::Range(int64_t{1}, kMostSamples));
  app.add_option("--temperature", options.temperature, "Below 1: nearer to the most probable words")
      ->type_name("T")
      ->group(kGroup)
      ->needs(sample)
      ->capture_default_str();
  app.add_option("--top-k", options.top_k, "Draw among the K best words; 0: all")
      ->type_name("K")
      ->group(kGroup)
      ->needs(sample)
      ->capture_default_str();
  app.add_option("--top-p", options.top_p,
                 "Draw among the fewest best words that have this share of the probability")
      ->type_name("P")
      ->group(kGroup)
      ->needs(sample)
      ->capture_default_str();
  app.add_option("--seed", options.seed, "The same seed draws the same outputs")
      ->type_name("N")
      ->group(kGroup)
      ->needs(sample)
      ->capture_default_str();
  return sample;
}

CLI::Option* add_next_options(CLI::App& app, Options& options) {
  constexpr const char* kGroup = "Next words";
  CLI::Option* next =
      add_given(app, "--next", options.next, "Show the K most probable next words instead of searching")
          ->type_name("K")
          ->group(kGroup)
          ->check(CLI::Range(int64_t{1}, int64_t{std::numeric_limits<int32_t>::max()}));
  app.add_option("--prefix", options.prefix, "Only words that begin so")
      ->type_name("TEXT")
      ->group(kGroup)
      ->needs(next);
  app.add_flag("--exclude-seen", options.exclude_seen, "Not the words of the prompt")
      ->group(kGroup)
      ->needs(next);
  return next;
}

void add_input_and_output(CLI::App& app, Options& options) {
  CLI::Option* input = app.add_option("-i,--input", options.input,
                                      "Prompts, one a line, plain or .gz or .zst; -: standard input")
                           ->type_name("FILE")
                           ->capture_default_str();
  app.add_option("-p,--prompt", options.prompts, "A prompt; repeatable, instead of --input")
      ->type_name("TEXT")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes(input);
  add_format(app, options.format, {"text", "jsonl", "moses"});
  app.add_flag("--scores", options.scores,
               "Text: columns with log-probability and score (other formats have them)");
  add_output(app, options.output);
}

}  // namespace

Command add_decode(CLI::App& app) {
  auto options = std::make_shared<Options>();
  CLI::App* command =
      app.add_subcommand("decode", "Continue prompts: beam search, samples, or best next words");
  add_model(*command, options->model);
  add_input_and_output(*command, *options);
  const SearchFlags search = add_beam_options(*command, *options);
  CLI::Option* sample = add_sampling_options(*command, *options);
  CLI::Option* next = add_next_options(*command, *options);
  sample->excludes(next);
  for (CLI::Option* option : search.beam) option->excludes(sample)->excludes(next);
  for (CLI::Option* option : search.length) option->excludes(next);
  command
      ->add_option(
          "--suppress", options->suppress,
          "Words that are never generated, separated by spaces; repeatable; '' for none (default: <unk>)")
      ->type_name("WORDS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll);
  add_memory_budget(*command, options->memory_budget,
                    "Limit of what the search takes beside the model, such as 64MiB");
  command->add_option("--batch", options->batch, "Inputs worked on together, at most; 0: chosen")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostInputs));
  command->add_flag("--stats", options->stats,
                    "Print work done and memory used to standard error at the end");
  add_runtime(*command, options->runtime);
  add_log_level(*command);
  command->footer(
      "Defaults of the search are those of the model's configuration (section decode).\n"
      "Examples:\n"
      "  hsm decode --model models/quickstart --beam 8 --prompt 'in the beginning'\n"
      "  hsm decode --model models/quickstart --beam 16 --nbest 4 --scores --input prompts.txt\n"
      "  hsm decode --model models/quickstart --sample 5 --temperature 0.8 --seed 7 --prompt 'and he said'\n"
      "  hsm decode --model models/quickstart --next 10 --prefix th --prompt 'out of'\n"
      "  hsm decode --model models/quickstart --beam 64 --memory-budget 16MiB --stats --format jsonl < "
      "prompts.txt\n"
      "Formats and definitions: docs/decoding.md");
  return {command, [options] { return run_decode(*options); }};
}

}  // namespace hsm::cli
