#include <spdlog/spdlog.h>
#include <unistd.h>

#include <chrono>
#include <memory>
#include <string>

#include "cli/command.h"
#include "cli/decode_options.h"
#include "cli/decode_report.h"
#include "cli/output.h"
#include "cli/reading_progress.h"
#include "decode/network_reader.h"
#include "decode/prompt_reader.h"
#include "gpu/decoding_device.h"

namespace hsm::cli {
namespace {

/// Bytes of a loaded model: mapped weights, and copies of them in another order or elsewhere.
uint64_t model_bytes(const SavedModel& saved, const DecodeDevice& device) {
  uint64_t bytes = device.weight_copies();
  for (const TensorRef& tensor : saved.weights.tensors()) bytes += tensor.bytes();
  return bytes;
}

void refuse_what_does_not_fit(const DecodeOptions& options) {
  if (options.next && options.format == "moses")
    throw UsageError("--format moses: --next has text and jsonl");
}

/// Where inputs come from.
struct Input {
  std::unique_ptr<PromptFeed> feed;
  const LineReader* lines = nullptr;  ///< null for prompts of the command line
  std::string path;
  std::string name;  ///< for messages
};

template <class Reader>
Input as_input(std::unique_ptr<Reader> reader, const std::string& path) {
  const LineReader* lines = &reader->lines();
  return {std::move(reader), lines, path, lines->name()};
}

Input open_input(const DecodeOptions& options, const SavedModel& saved) {
  const TextOptions text{saved.config.data.lowercase};
  if (options.candidates) {
    const NetworkReaderOptions limits{options.max_positions, options.bad_lines};
    return as_input(std::make_unique<NetworkReader>(*options.candidates, text, saved.vocabulary, limits),
                    *options.candidates);
  }
  if (!options.prompts.empty())
    return {std::make_unique<PromptList>(options.prompts, text, saved.vocabulary, options.bad_lines), nullptr,
            "", "--prompt"};
  if (options.input == "-" && ::isatty(STDIN_FILENO) != 0) {
    spdlog::info("reading prompts, one a line; an empty one starts from nothing; end with Ctrl-D");
  }
  return as_input(std::make_unique<PromptReader>(options.input, text, saved.vocabulary, options.bad_lines),
                  options.input);
}

ExitCode run_decode(const DecodeOptions& options) {
  refuse_what_does_not_fit(options);
  const SavedModel saved = open_model(options.model.directory());
  const DecoderSettings chosen = decoder_settings(options, saved);
  ThreadPool pool(options.runtime.thread_count());
  const auto device = open_decode_device(saved, options.runtime.device.value_or("auto"), pool);
  Decoder decoder(*device, chosen);
  const Input input = open_input(options, saved);

  Output out(options.output);
  ReadingProgress progress(options.output == "-" && ::isatty(STDOUT_FILENO) != 0);
  progress.start(input.path);
  const auto writer = make_result_writer(saved.vocabulary, output_options(options, chosen),
                                         [&](std::string_view piece, bool block_complete) {
                                           out.write(piece);
                                           if (!block_complete) return;
                                           out.flush();
                                           if (input.lines != nullptr) progress.draw(*input.lines);
                                         });
  WarningSink sink(*writer, input.name);
  const auto start = std::chrono::steady_clock::now();
  decoder.run(*input.feed, sink);
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - start;
  progress.clear();
  out.finish();
  sink.summarise();
  if (decoder.stats().inputs == 0)
    spdlog::warn("{}: no line to decode (an empty line is an empty prompt)", input.name);
  if (options.stats) print_stats(decoder, chosen.memory_budget, model_bytes(saved, *device), seconds.count());
  return ExitCode::done;
}

}  // namespace

Command add_decode(CLI::App& app) {
  auto options = std::make_shared<DecodeOptions>();
  CLI::App* command =
      app.add_subcommand("decode", "Continue prompts: beam search, samples, or best next words");
  add_decode_options(*command, *options);
  command->footer(
      "Defaults of the search are those of the model's configuration (section decode).\n"
      "Examples:\n"
      "  hsm decode --model models/quickstart --beam 8 --prompt 'in the beginning'\n"
      "  hsm decode --model models/quickstart --beam 16 --nbest 4 --scores --input prompts.txt\n"
      "  hsm decode --model models/quickstart --candidates heard.jsonl --lm-weight 0.7 --scores\n"
      "  hsm decode --model models/quickstart --sample 5 --temperature 0.8 --seed 7 --prompt 'and he said'\n"
      "  hsm decode --model models/quickstart --next 10 --prefix th --prompt 'out of'\n"
      "  hsm decode --model models/quickstart --beam 64 --memory-budget 16MiB --stats --format jsonl < "
      "prompts.txt\n"
      "  hsm decode --model models/quickstart --candidates heard.jsonl --lm-weight 0.7 --scores\n"
      "Formats and definitions: docs/decoding.md");
  return {command, [options] { return run_decode(*options); }};
}

}  // namespace hsm::cli
