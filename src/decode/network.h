#pragma once
#include <cstdint>
#include <string>
#include <vector>

namespace hsm {

/// A confusion network: positions one after another, at each of which one of several alternatives was said,
/// printed or typed. What recognises speech, print, keys or spelling gives a score to each, the channel
/// score.
struct Network {
  struct Alternative {
    std::string text;             ///< its words, one space between; empty for nothing at all
    double score = 0;             ///< of the channel: a log-probability, or anything that adds up; finite
    std::vector<int32_t> tokens;  ///< ids of its words
    int32_t unknown = 0;          ///< words read as <unk>
  };
  std::vector<std::vector<Alternative>> positions;  ///< each with at least one alternative
};

}  // namespace hsm
