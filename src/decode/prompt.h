#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "decode/network.h"

namespace hsm {

/// One line of input.
struct Prompt {
  int64_t number = 0;                ///< from 0, in the order of the input
  std::string text;                  ///< as it was written
  std::vector<int32_t> tokens;       ///< ids of its words, without start or end symbol
  std::vector<std::string> unknown;  ///< words that are not in the vocabulary, read as <unk>
  std::string id;                    ///< what the input calls it, as JSON; empty without a name
  Network network;                   ///< what may follow, when that is given
  std::string error;                 ///< what is wrong with the line, when that is reported as its result
};

/// Where prompts come from, one after another.
class PromptFeed {
 public:
  enum class Status { ready, none_yet, end };

  virtual ~PromptFeed() = default;
  /// Puts the next prompt into `prompt`. Without `wait`, says none_yet rather than wait for it. Errors of
  /// the input are thrown in its order: after all prompts before the place.
  virtual Status take(Prompt& prompt, bool wait) = 0;
};

}  // namespace hsm
