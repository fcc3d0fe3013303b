#include "gpu/out_of_memory.h"

#include "base/size.h"

namespace hsm {

std::string asked_memory(std::string_view allocator_message) {
  constexpr std::string_view kBefore = "Tried to allocate ";
  const size_t at = allocator_message.find(kBefore);
  if (at == std::string_view::npos) return {};
  const std::string_view rest = allocator_message.substr(at + kBefore.size());
  const size_t unit = rest.find(' ');
  if (unit == std::string_view::npos) return {};
  const size_t end = rest.find_first_of(" .,\n", unit + 1);
  return std::string(rest.substr(0, end));
}

std::string out_of_memory_message(const std::string& asked, const DeviceMemory& memory, const char* advice) {
  std::string text = "cuda:" + std::to_string(memory.device) +
                     " is out of memory: " + (asked.empty() ? "more was" : asked + " were") + " asked for, " +
                     format_size(memory.held) + " are held and " + format_size(memory.free) + " of " +
                     format_size(memory.total) + " are free";
  if (memory.limit > 0) text += "; runtime.gpu_memory_limit is " + format_size(memory.limit);
  return text + ". Less is needed " + advice;
}

}  // namespace hsm
