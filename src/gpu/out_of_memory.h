#pragma once
#include <cstdint>
#include <string>
#include <string_view>

namespace hsm {

/// A device's memory at the moment when it did not suffice, in bytes.
struct DeviceMemory {
  int device = 0;
  uint64_t held = 0;   ///< by this program
  uint64_t free = 0;   ///< on the device
  uint64_t total = 0;  ///< of the device
  uint64_t limit = 0;  ///< runtime.gpu_memory_limit; 0: none
};

/// What the allocator's message says was asked for, such as "20.00 MiB"; empty when it does not.
std::string asked_memory(std::string_view allocator_message);

/// What makes a training, and a decoding, need less.
inline constexpr const char* kTrainingAdvice =
    "with more train.micro_batches, with a train.head_chunk, with train.precision \"bf16\", or with a "
    "smaller "
    "train.batch or train.bptt";
inline constexpr const char* kDecodingAdvice = "with a smaller --memory-budget";

/// What was asked, held and free, and what to change: the text of a ResourceError.
std::string out_of_memory_message(const std::string& asked, const DeviceMemory& memory, const char* advice);

}  // namespace hsm
