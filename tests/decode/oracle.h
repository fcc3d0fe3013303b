#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/options.h"
#include "decode/scorer.h"

namespace hsm::testing {

/// An output as the tests compare it: to the bit.
struct Output {
  std::vector<int32_t> tokens;
  double log_prob = 0;
  double score = 0;
  bool finished = false;

  bool operator==(const Output&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Output& output);

using Allowed = std::function<bool(int32_t)>;

/// Beam search the plain way: every word of every hypothesis is scored and all are sorted; it always runs to
/// max_length.
std::vector<Output> dense_beam_search(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                      const BeamOptions& options, const Allowed& allowed = {});

/// The n best of all possible outputs, each scored from the definition.
std::vector<Output> exhaustive_search(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                      const BeamOptions& options, const Allowed& allowed = {});

/// Log-probability of each token of a sequence after a prompt.
std::vector<double> token_log_probs(const Scorer& scorer, const std::vector<int32_t>& prompt,
                                    const std::vector<int32_t>& tokens);

}  // namespace hsm::testing
