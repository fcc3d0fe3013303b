#include "decode/decoder.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <sstream>
#include <string>

#include "base/error.h"
#include "decode/arena.h"
#include "decode/beam_search.h"
#include "decode/network_search.h"
#include "decode/next_words.h"
#include "decode/sampling.h"
#include "decode/step_loop.h"
#include "decode/word_filter.h"

namespace hsm {
namespace {

constexpr int64_t kUsefulExpansions = 2048;

int64_t rows_per_input(const DecoderSettings& settings) {
  if (const auto* beam = std::get_if<BeamOptions>(&settings.task)) return beam->beam;
  if (const auto* sampling = std::get_if<SamplingOptions>(&settings.task)) return sampling->samples;
  if (const auto* network = std::get_if<NetworkOptions>(&settings.task))
    return NetworkSearch::rows_per_input(*network);
  return 1;
}

void check_range(const char* option, int64_t value, int64_t least, int64_t most) {
  if (value >= least && value <= most) return;
  throw UsageError(std::string(option) + " " + std::to_string(value) + ": expected " + std::to_string(least) +
                   " to " + std::to_string(most));
}

void check_number(const char* option, double value, bool good, const char* expected) {
  if (good) return;
  std::ostringstream message;
  message << option << " " << value << ": expected " << expected;
  throw UsageError(message.str());
}

void check(const LengthOptions& options) {
  check_range("--max-length", options.max_length, 0, kLongestOutput);
  check_range("--min-length", options.min_length, 0, options.max_length);
  check_number("--length-penalty", options.length_penalty, std::isfinite(options.length_penalty),
               "a finite number");
}

void check(const BeamOptions& options) {
  check_range("--beam", options.beam, 1, kWidestBeam);
  check_range("--nbest", options.nbest, 1, options.beam);
  check(options.length);
  if ((options.beam + options.nbest) * options.length.max_length > std::numeric_limits<int32_t>::max()) {
    throw UsageError("--beam " + std::to_string(options.beam) + " with --max-length " +
                     std::to_string(options.length.max_length) +
                     ": expected (beam + nbest) x max-length below 2147483648");
  }
}

void check(const SamplingOptions& options) {
  check_range("--sample", options.samples, 1, kMostSamples);
  check_range("--top-k", options.top_k, 0, std::numeric_limits<int32_t>::max());
  check_number("--temperature", options.temperature,
               options.temperature > 0 && std::isfinite(options.temperature), "a finite number above 0");
  check_number("--top-p", options.top_p, options.top_p > 0 && options.top_p <= 1,
               "a number above 0, at most 1");
  check(options.length);
}

void check(const NetworkOptions& options) {
  check_range("--beam", options.beam, 1, kWidestBeam);
  check_range("--nbest", options.nbest, 1, options.beam);
  check_range("--max-positions", options.max_positions, 1, kMostPositions);
  check_number("--lm-weight", options.lm_weight, options.lm_weight >= 0 && std::isfinite(options.lm_weight),
               "a finite number of at least 0");
  check_number("--word-bonus", options.word_bonus, std::isfinite(options.word_bonus), "a finite number");
  check_number("--oov-penalty", options.oov_penalty, std::isfinite(options.oov_penalty), "a finite number");
  if (options.beam * options.max_positions > std::numeric_limits<int32_t>::max()) {
    throw UsageError("--beam " + std::to_string(options.beam) + " with --max-positions " +
                     std::to_string(options.max_positions) +
                     ": expected beam x max-positions below 2147483648");
  }
}

void check(const NextWordOptions& options) {
  check_range("--next", options.count, 1, std::numeric_limits<int32_t>::max());
}

PlanLimits limits(const DecodeDevice& device, const DecoderSettings& settings) {
  const int64_t rows = rows_per_input(settings);
  const int64_t all = std::max<int64_t>(rows * device.clusters(), 1);
  PlanLimits limits;
  limits.budget = settings.memory_budget;
  limits.inputs = settings.batch > 0
                      ? settings.batch
                      : std::clamp<int64_t>(device.useful_rows() / rows, 1, device.useful_inputs());
  limits.expansions_per_input = std::min(std::max<int64_t>(2 * rows, 16), all);
  limits.expansions = settings.expansions > 0 ? settings.expansions : kUsefulExpansions;
  return limits;
}

}  // namespace

/// Everything that a run needs, laid out in one arena, and on the device.
struct Decoder::Workspace {
  Workspace(uint64_t bytes, uint64_t device_bytes, const DecodeDevice& device,
            const DecoderSettings& settings, int64_t inputs, int64_t expansions)
      : arena(bytes > 0 ? Arena(bytes) : Arena()),
        filter(arena, device.words(), settings.allowed),
        engine(device.make_engine(arena, filter,
                                  {inputs * rows_per_input(settings), expansions,
                                   std::holds_alternative<NetworkOptions>(settings.task), device_bytes})),
        strategy(make_strategy(settings, inputs)),
        loop(arena, *engine, *strategy, inputs) {}

  std::unique_ptr<Strategy> make_strategy(const DecoderSettings& settings, int64_t inputs) {
    return std::visit([&](const auto& options) { return make(options, inputs); }, settings.task);
  }
  std::unique_ptr<Strategy> make(const BeamOptions& options, int64_t inputs) {
    return std::make_unique<BeamSearch>(arena, options, *engine, inputs);
  }
  std::unique_ptr<Strategy> make(const SamplingOptions& options, int64_t inputs) {
    return std::make_unique<Sampling>(arena, options, *engine, inputs);
  }
  std::unique_ptr<Strategy> make(const NextWordOptions& options, int64_t inputs) {
    return std::make_unique<NextWords>(arena, options, *engine, inputs);
  }
  std::unique_ptr<Strategy> make(const NetworkOptions& options, int64_t inputs) {
    return std::make_unique<NetworkSearch>(arena, options, *engine, inputs);
  }

  [[nodiscard]] WorkspaceSize size() const {
    WorkspaceSize size{arena.used(), 0, arena.parts()};
    for (const MemoryPart& part : engine->device_memory()) {
      size.bytes += part.bytes;
      size.device_bytes += part.bytes;
      size.parts.push_back(part);
    }
    return size;
  }

  Arena arena;
  WordFilter filter;
  std::unique_ptr<RowEngine> engine;
  std::unique_ptr<Strategy> strategy;
  StepLoop loop;
};

Decoder::Decoder(const DecodeDevice& device, const DecoderSettings& settings) {
  std::visit([](const auto& options) { check(options); }, settings.task);
  check_range("--batch", settings.batch, 0, kMostInputs);
  plan_ = plan_memory(limits(device, settings), [&](int64_t inputs, int64_t expansions) {
    return Workspace(0, 0, device, settings, inputs, expansions).size();
  });
  const WorkspaceSize& size = plan_.workspace;
  workspace_ = std::make_unique<Workspace>(size.bytes - size.device_bytes, size.device_bytes, device,
                                           settings, plan_.inputs, plan_.expansions);
}

Decoder::~Decoder() = default;

void Decoder::run(PromptFeed& feed, ResultSink& sink) {
  workspace_->loop.run(feed, sink);
}

DecodeStats Decoder::stats() const {
  const StepLoop& loop = workspace_->loop;
  DecodeStats stats;
  stats.inputs = loop.inputs();
  stats.steps = loop.steps();
  stats.rows = loop.rows_fed();
  stats.expansions = workspace_->engine->expansions();
  workspace_->strategy->report(stats);
  return stats;
}

}  // namespace hsm
