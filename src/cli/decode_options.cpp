#include "cli/decode_options.h"

#include <algorithm>
#include <limits>

#include "base/error.h"
#include "base/utf8.h"
#include "decode/sampling.h"
#include "text/lowercase.h"

namespace hsm::cli {
namespace {

LengthOptions length_options(const DecodeOptions& options, const DecodeConfig& defaults) {
  LengthOptions length;
  length.max_length = options.max_length.value_or(
      options.min_length ? std::max(defaults.max_length, *options.min_length) : defaults.max_length);
  length.min_length = options.min_length.value_or(std::min(defaults.min_length, length.max_length));
  length.length_penalty = options.length_penalty.value_or(defaults.length_penalty);
  return length;
}

BeamOptions beam_options(const DecodeOptions& options, const DecodeConfig& defaults) {
  BeamOptions beam;
  beam.beam = options.beam.value_or(defaults.beam);
  beam.nbest = options.nbest.value_or(std::min(defaults.nbest, beam.beam));
  beam.length = length_options(options, defaults);
  beam.token_scores = options.format == "jsonl";
  return beam;
}

NetworkOptions network_options(const DecodeOptions& options, const DecodeConfig& defaults) {
  NetworkOptions network;
  network.beam = options.beam.value_or(defaults.beam);
  network.nbest = options.nbest.value_or(std::min(defaults.nbest, network.beam));
  network.lm_weight = options.lm_weight;
  network.word_bonus = options.word_bonus;
  network.oov_penalty = options.oov_penalty;
  network.max_positions = options.max_positions;
  return network;
}

SamplingOptions sampling_options(const DecodeOptions& options, const DecodeConfig& defaults) {
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

std::vector<int32_t> suppressed_words(const DecodeOptions& options, const SavedModel& model) {
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

std::function<bool(int32_t)> allowed_words(const DecodeOptions& options, const SavedModel& model) {
  return [&vocabulary = model.vocabulary, suppressed = suppressed_words(options, model),
          prefix = as_in_text(options.prefix, "--prefix", model)](int32_t word) {
    return vocabulary.word(word).starts_with(prefix) &&
           !std::binary_search(suppressed.begin(), suppressed.end(), word);
  };
}

int64_t most_lines_in_block(const DecoderSettings& settings) {
  if (const auto* beam = std::get_if<BeamOptions>(&settings.task)) return beam->nbest;
  if (const auto* sampling = std::get_if<SamplingOptions>(&settings.task)) return sampling->samples;
  if (const auto* network = std::get_if<NetworkOptions>(&settings.task)) return network->nbest;
  return std::get<NextWordOptions>(settings.task).count;
}

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

SearchFlags add_beam_options(CLI::App& app, DecodeOptions& options) {
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

void add_network_options(CLI::App& app, DecodeOptions& options) {
  constexpr const char* kGroup = "Candidates";
  CLI::Option* candidates = app.get_option("--candidates");
  const auto add = [&](const char* name, auto& value, const char* type, const char* help) {
    app.add_option(name, value, help)
        ->type_name(type)
        ->group(kGroup)
        ->needs(candidates)
        ->capture_default_str();
  };
  add("--lm-weight", options.lm_weight, "W", "Factor of the model's log-probability beside channel scores");
  add("--word-bonus", options.word_bonus, "B", "Added to the score for each word");
  add("--oov-penalty", options.oov_penalty, "U", "Taken from the score for each word outside the vocabulary");
  add("--max-positions", options.max_positions, "N", "Positions that an input may have");
}

CLI::Option* add_sampling_options(CLI::App& app, DecodeOptions& options) {
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

CLI::Option* add_next_options(CLI::App& app, DecodeOptions& options) {
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

void add_input_and_output(CLI::App& app, DecodeOptions& options) {
  CLI::Option* input = app.add_option("-i,--input", options.input,
                                      "Prompts, one a line, plain or .gz or .zst; -: standard input")
                           ->type_name("FILE")
                           ->capture_default_str();
  CLI::Option* prompt =
      app.add_option("-p,--prompt", options.prompts, "A prompt; repeatable, instead of --input")
          ->type_name("TEXT")
          ->expected(1)
          ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
          ->excludes(input);
  add_given(app, "--candidates", options.candidates,
            "Confusion networks, one a line: choose among their alternatives; -: standard input")
      ->type_name("FILE")
      ->excludes(input)
      ->excludes(prompt);
  add_bad_lines(app, options.bad_lines);
  add_format(app, options.format, {"text", "jsonl", "moses"});
  app.add_flag("--scores", options.scores, "Text: columns with the scores (other formats have them)");
  add_output(app, options.output);
}

}  // namespace

DecoderSettings decoder_settings(const DecodeOptions& options, const SavedModel& model) {
  const DecodeConfig& defaults = model.config.decode;
  DecoderSettings settings;
  if (options.candidates) {
    settings.task = network_options(options, defaults);
  } else if (options.next) {
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

OutputOptions output_options(const DecodeOptions& options, const DecoderSettings& settings) {
  OutputOptions output;
  output.format = options.format == "text"    ? OutputFormat::text
                  : options.format == "jsonl" ? OutputFormat::jsonl
                                              : OutputFormat::moses;
  output.scores = options.scores;
  output.numbered = most_lines_in_block(settings) > 1;
  output.networks = options.candidates.has_value();
  return output;
}

void add_decode_options(CLI::App& app, DecodeOptions& options) {
  add_model(app, options.model);
  add_input_and_output(app, options);
  const SearchFlags search = add_beam_options(app, options);
  add_network_options(app, options);
  CLI::Option* candidates = app.get_option("--candidates");
  CLI::Option* sample = add_sampling_options(app, options);
  CLI::Option* next = add_next_options(app, options);
  sample->excludes(next)->excludes(candidates);
  next->excludes(candidates);
  for (CLI::Option* option : search.beam) option->excludes(sample)->excludes(next);
  for (CLI::Option* option : search.length) option->excludes(next)->excludes(candidates);
  app.add_option(
         "--suppress", options.suppress,
         "Words that are never generated, separated by spaces; repeatable; '' for none (default: <unk>)")
      ->type_name("WORDS")
      ->expected(1)
      ->multi_option_policy(CLI::MultiOptionPolicy::TakeAll)
      ->excludes(candidates);
  add_memory_budget(app, options.memory_budget,
                    "Limit of what the search takes beside the model, such as 64MiB");
  app.add_option("--batch", options.batch, "Inputs worked on together, at most; 0: chosen")
      ->type_name("N")
      ->check(CLI::Range(int64_t{0}, kMostInputs));
  app.add_flag("--stats", options.stats, "Print work done and memory used to standard error at the end");
  add_runtime(app, options.runtime);
  add_log_level(app);
}

}  // namespace hsm::cli
