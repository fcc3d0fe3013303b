#pragma once
#include <cstdint>
#include <span>

namespace hsm::kernels {

/// Sets of instructions that the inner loops are compiled for, each a superset of those before it.
enum class InstructionSet : int { portable, avx2, avx512 };

/// What this process runs: the best that the processor has, unless HSM_INSTRUCTION_SET in the environment
/// ("portable", "avx2", "avx512") asks for less. Decided at the first call. UsageError for another value.
InstructionSet active_instruction_set();

/// The set for a wish as in that variable (null or empty: none), never above what the processor has.
InstructionSet choose_instruction_set(const char* wish);

/// All sets that this processor can run, in ascending order.
std::span<const InstructionSet> available_instruction_sets();

const char* name(InstructionSet set);

}  // namespace hsm::kernels
