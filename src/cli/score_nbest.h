#pragma once
#include <CLI/CLI.hpp>
#include <string>
#include <vector>

#include "base/error.h"
#include "cli/options.h"
#include "eval/nbest.h"

namespace hsm::cli {

/// hsm score --nbest: lists rescored instead of text.
struct NbestOptions {
  std::string format;  ///< kaldi, moses or jsonl; empty: text is scored
  std::string channel_costs;
  NbestWeights weights;
};
void add_nbest_options(CLI::App& app, NbestOptions& options);

/// Options of hsm score that hold for lists, too.
struct NbestRun {
  ModelOption model;
  RuntimeOption runtime;
  std::vector<std::string> files;
  std::string format;  ///< of the output; empty: that of the lists
  std::string output;
  BadLines bad_lines = BadLines::error;
};
ExitCode run_score_nbest(const NbestRun& run, const NbestOptions& options);

}  // namespace hsm::cli
