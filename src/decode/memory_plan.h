#pragma once
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "decode/arena.h"

namespace hsm {

/// What a workspace takes.
struct WorkspaceSize {
  uint64_t bytes = 0;         ///< in all
  uint64_t device_bytes = 0;  ///< of them, on a GPU
  std::vector<MemoryPart> parts;
};

/// How the memory budget is used.
struct MemoryPlan {
  int64_t inputs = 1;       ///< worked on together
  int64_t expansions = 1;   ///< clusters expanded at a time
  WorkspaceSize workspace;  ///< at most the budget
};

/// What the planner may choose from.
struct PlanLimits {
  uint64_t budget = 0;
  int64_t inputs = 1;                ///< at most
  int64_t expansions_per_input = 1;  ///< as many as are useful
  int64_t expansions = 1;            ///< at most
};

/// Lays a workspace for so many inputs and expansions out without taking memory.
using MeasureWorkspace = std::function<WorkspaceSize(int64_t inputs, int64_t expansions)>;

/// Chooses the largest workspace within the budget: as many inputs as fit with at least half of the useful
/// expansions, else one input with what fits. ResourceError when one input and one expansion don't fit,
/// with the least budget that does and its parts.
MemoryPlan plan_memory(const PlanLimits& limits, const MeasureWorkspace& measure);

/// "states 1.2 MiB, root scores 3.0 MiB, …", largest first.
std::string describe_parts(const std::vector<MemoryPart>& parts);

}  // namespace hsm
