#pragma once
#include <cstdint>
#include <functional>
#include <memory>
#include <variant>

#include "decode/memory_plan.h"
#include "decode/options.h"
#include "decode/prompt.h"
#include "decode/result.h"
#include "decode/row_engine.h"
#include "decode/stats.h"

namespace hsm {

inline constexpr int64_t kWidestBeam = int64_t{1} << 20;
inline constexpr int64_t kLongestOutput = 2'000'000'000;
inline constexpr int64_t kMostInputs = 1024;
inline constexpr int64_t kMostPositions = 1'000'000;

struct DecoderSettings {
  std::variant<BeamOptions, SamplingOptions, NextWordOptions, NetworkOptions> task;
  uint64_t memory_budget = uint64_t{256} << 20;  ///< bytes, for all that the search takes
  int64_t batch = 0;                             ///< inputs worked on together, at most; 0: what seems best
  int64_t expansions = 0;                        ///< clusters expanded at a time, at most; 0: what seems best
  std::function<bool(int32_t)> allowed;          ///< words that may be generated; empty: all
};

/// Decodes prompts within a memory budget. All memory is planned and reserved when the object is made, and
/// used again for every input; results depend on prompt and options (and, for samples, on the number of the
/// input), not on budget, batch, expansions or threads.
class Decoder {
 public:
  /// UsageError for options out of range; ResourceError when the budget is too small. The device must outlive
  /// the object.
  Decoder(const DecodeDevice& device, const DecoderSettings& settings);
  ~Decoder();
  Decoder(const Decoder&) = delete;
  Decoder& operator=(const Decoder&) = delete;

  /// Until the feed ends; errors of the feed come after the results before them. May be called again.
  void run(PromptFeed& feed, ResultSink& sink);

  [[nodiscard]] const MemoryPlan& plan() const noexcept { return plan_; }
  [[nodiscard]] DecodeStats stats() const;

 private:
  struct Workspace;

  MemoryPlan plan_;
  std::unique_ptr<Workspace> workspace_;
};

}  // namespace hsm
