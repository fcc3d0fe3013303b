#include "kernels/instruction_set.h"

#include <array>
#include <cstdlib>
#include <string>

#include "base/error.h"
#include "base/utf8.h"
#include "kernels/gemm.h"

namespace hsm::kernels {
namespace {

constexpr std::array kAll = {InstructionSet::portable, InstructionSet::avx2, InstructionSet::avx512};

InstructionSet best_of_processor() {
#if defined(__x86_64__)
  __builtin_cpu_init();
  const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  const bool avx512 = avx2 && __builtin_cpu_supports("avx512f") && __builtin_cpu_supports("avx512dq") &&
                      __builtin_cpu_supports("avx512vl") && __builtin_cpu_supports("avx512bw");
  if (avx512) return InstructionSet::avx512;
  if (avx2) return InstructionSet::avx2;
#endif
  return InstructionSet::portable;
}

}  // namespace

InstructionSet choose_instruction_set(const char* wish) {
  const InstructionSet best = best_of_processor();
  if (wish == nullptr || *wish == '\0') return best;
  for (const InstructionSet set : kAll) {
    if (std::string(wish) == name(set)) return set < best ? set : best;
  }
  throw UsageError("HSM_INSTRUCTION_SET: " + quote(wish) + " given, expected portable, avx2 or avx512");
}

InstructionSet active_instruction_set() {
  static const InstructionSet set = choose_instruction_set(std::getenv("HSM_INSTRUCTION_SET"));
  return set;
}

std::span<const InstructionSet> available_instruction_sets() {
  return std::span(kAll).first(static_cast<size_t>(best_of_processor()) + 1);
}

const char* name(InstructionSet set) {
  switch (set) {
    case InstructionSet::avx512:
      return "avx512";
    case InstructionSet::avx2:
      return "avx2";
    case InstructionSet::portable:
      break;
  }
  return "portable";
}

const char* instruction_set() {
  return name(active_instruction_set());
}

}  // namespace hsm::kernels
