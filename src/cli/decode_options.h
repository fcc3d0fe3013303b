#pragma once
#include <CLI/CLI.hpp>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "cli/options.h"
#include "decode/decoder.h"
#include "decode/output.h"
#include "model/model_directory.h"
#include "text/vocabulary.h"

namespace hsm::cli {

/// The options of hsm decode.
struct DecodeOptions {
  ModelOption model;
  RuntimeOption runtime;
  std::string input = "-";
  std::vector<std::string> prompts;
  std::optional<std::string> candidates;
  BadLines bad_lines = BadLines::error;
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

  double lm_weight = 1;
  double word_bonus = 0;
  double oov_penalty = 0;
  int64_t max_positions = NetworkOptions{}.max_positions;

  std::optional<int64_t> sample;
  double temperature = 1;
  int64_t top_k = 0;
  double top_p = 1;
  uint64_t seed = 1;

  std::optional<int64_t> next;
  std::string prefix;
  bool exclude_seen = false;
};

void add_decode_options(CLI::App& app, DecodeOptions& options);

/// What the decoder is to do, with the model's configuration for what was not given. UsageError for words
/// that the model doesn't have.
DecoderSettings decoder_settings(const DecodeOptions& options, const SavedModel& model);
OutputOptions output_options(const DecodeOptions& options, const DecoderSettings& settings);

}  // namespace hsm::cli
