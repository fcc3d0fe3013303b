#include "cli/decode_report.h"

#include <spdlog/fmt/fmt.h>
#include <spdlog/spdlog.h>

#include <cstdio>
#include <utility>

#include "base/memory.h"
#include "base/size.h"
#include "base/utf8.h"
#include "text/vocabulary.h"

namespace hsm::cli {
namespace {

constexpr int64_t kShownLines = 10;  // with words that are not in the vocabulary

}  // namespace

WarningSink::WarningSink(ResultSink& sink, std::string input)
    : sink_(&sink), input_(std::move(input)), bad_lines_(input_) {}

void WarningSink::begin(const Prompt& prompt, int64_t hypotheses) {
  warn_of_unknown_words(prompt);
  if (hypotheses == 0)
    spdlog::warn("{}:{}: no continuation has a probability above 0", input_, prompt.number + 1);
  sink_->begin(prompt, hypotheses);
}

void WarningSink::hypothesis(const Prompt& prompt, const Hypothesis& hypothesis) {
  sink_->hypothesis(prompt, hypothesis);
}

void WarningSink::path(const Prompt& prompt, const NetworkPath& path) {
  sink_->path(prompt, path);
}

void WarningSink::end(const Prompt& prompt) {
  sink_->end(prompt);
}

void WarningSink::next_words(const Prompt& prompt, std::span<const Candidate> words) {
  warn_of_unknown_words(prompt);
  if (words.empty()) spdlog::warn("{}:{}: no next word fits", input_, prompt.number + 1);
  sink_->next_words(prompt, words);
}

void WarningSink::bad_line(const Prompt& prompt) {
  bad_lines_.take(prompt.error);
  sink_->bad_line(prompt);
}

void WarningSink::summarise() const {
  if (unknown_lines_ > kShownLines) {
    spdlog::warn("{}: {} lines hold {} words that are not in the vocabulary, read as {}", input_,
                 format_count(unknown_lines_), format_count(unknown_words_), kUnknownWord);
  }
  bad_lines_.summarise();
}

void WarningSink::warn_of_unknown_words(const Prompt& prompt) {
  if (prompt.unknown.empty()) return;
  unknown_words_ += static_cast<int64_t>(prompt.unknown.size());
  if (++unknown_lines_ > kShownLines) return;
  std::string words;
  for (const std::string& word : prompt.unknown) words += (words.empty() ? "" : ", ") + quote(word);
  spdlog::warn("{}:{}: not in the vocabulary, read as {}: {}", input_, prompt.number + 1, kUnknownWord,
               words);
}

void print_stats(const Decoder& decoder, uint64_t budget, uint64_t model_bytes, double seconds) {
  const DecodeStats stats = decoder.stats();
  const MemoryPlan& plan = decoder.plan();
  const double share = stats.possible_expansions == 0 ? 0
                                                      : 100 * static_cast<double>(stats.expansions) /
                                                            static_cast<double>(stats.possible_expansions);
  fmt::print(stderr, "inputs           {}, up to {} together\n", format_count(stats.inputs), plan.inputs);
  fmt::print(stderr, "steps            {}, {} rows\n", format_count(stats.steps), format_count(stats.rows));
  fmt::print(stderr, "tokens           {}\n", format_count(stats.tokens));
  const auto per_second = [&](int64_t count) {
    return seconds > 0 ? static_cast<double>(count) / seconds : 0.0;
  };
  fmt::print(stderr, "seconds          {:.3f}, {:.1f} steps/s, {:.0f} rows/s\n", seconds,
             per_second(stats.steps), per_second(stats.rows));
  fmt::print(stderr, "expansions       {} of {} clusters x hypotheses ({:.2f} %), up to {} at a time\n",
             format_count(stats.expansions), format_count(stats.possible_expansions), share, plan.expansions);
  if (stats.peak_nodes > 0) {
    fmt::print(stderr, "hypothesis pool  {} nodes at most in one input\n", format_count(stats.peak_nodes));
  }
  fmt::print(stderr, "search memory    {} of a budget of {}: {}\n", format_size(plan.workspace.bytes),
             format_size(budget), describe_parts(plan.workspace.parts));
  fmt::print(stderr, "model memory     {}\n", format_size(model_bytes));
  fmt::print(stderr, "together         {}\n", format_size(plan.workspace.bytes + model_bytes));
  fmt::print(stderr, "process peak     {}\n", format_size(peak_resident_bytes()));
}

}  // namespace hsm::cli
