#include "decode/memory_plan.h"

#include <algorithm>
#include <optional>

#include "base/error.h"
#include "base/size.h"

namespace hsm {
namespace {

MemoryPlan measured(int64_t inputs, int64_t expansions, const MeasureWorkspace& measure) {
  return {inputs, expansions, measure(inputs, expansions)};
}

// The most expansions, down from `most` by halves to `least`, that fit beside so many inputs.
std::optional<MemoryPlan> fit(const PlanLimits& limits, int64_t inputs, int64_t most, int64_t least,
                              const MeasureWorkspace& measure) {
  for (int64_t expansions = most; expansions >= least; expansions /= 2) {
    MemoryPlan plan = measured(inputs, expansions, measure);
    if (plan.workspace.bytes <= limits.budget) return plan;
  }
  return std::nullopt;
}

}  // namespace

MemoryPlan plan_memory(const PlanLimits& limits, const MeasureWorkspace& measure) {
  for (int64_t inputs = limits.inputs; inputs > 1; inputs /= 2) {
    const int64_t useful = std::min(inputs * limits.expansions_per_input, limits.expansions);
    if (auto plan = fit(limits, inputs, useful, std::max<int64_t>(useful / 2, 1), measure)) return *plan;
  }
  if (auto plan = fit(limits, 1, std::min(limits.expansions_per_input, limits.expansions), 1, measure))
    return *plan;
  const WorkspaceSize least = measure(1, 1);
  throw ResourceError("--memory-budget " + format_size(limits.budget) + " (" + std::to_string(limits.budget) +
                      " bytes) is too small for this search: it needs at least " +
                      std::to_string(least.bytes) + " bytes (" + describe_parts(least.parts) + ")");
}

std::string describe_parts(const std::vector<MemoryPart>& parts) {
  std::vector<MemoryPart> sorted = parts;
  std::stable_sort(sorted.begin(), sorted.end(),
                   [](const MemoryPart& a, const MemoryPart& b) { return a.bytes > b.bytes; });
  std::string text;
  for (const MemoryPart& part : sorted) {
    if (part.bytes == 0) continue;
    if (!text.empty()) text += ", ";
    text += std::string(part.name) + " " + format_size(part.bytes);
  }
  return text;
}

}  // namespace hsm
