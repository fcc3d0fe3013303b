#include "gpu/out_of_memory.h"

#include <gtest/gtest.h>

namespace hsm {
namespace {

TEST(OutOfMemory, FindsWhatWasAskedInTheAllocatorsMessage) {
  EXPECT_EQ(asked_memory("CUDA out of memory. Tried to allocate 20.00 MiB. GPU 0 has a total capacity of"),
            "20.00 MiB");
  EXPECT_EQ(asked_memory("CUDA out of memory. Tried to allocate 1.50 GiB (GPU 0; 79.15 GiB total"),
            "1.50 GiB");
  EXPECT_EQ(asked_memory("CUDA out of memory. Tried to allocate 512 bytes."), "512 bytes");
  EXPECT_EQ(asked_memory("CUDA error: an illegal memory access"), "");
  EXPECT_EQ(asked_memory("Tried to allocate "), "");
}

TEST(OutOfMemory, SaysWhatWasAskedHeldAndFreeAndWhatToChange) {
  constexpr uint64_t kGiB = uint64_t{1} << 30;
  EXPECT_EQ(out_of_memory_message("1.50 GiB", {1, 6 * kGiB, kGiB / 2, 8 * kGiB, 7 * kGiB}, kTrainingAdvice),
            "cuda:1 is out of memory: 1.50 GiB were asked for, 6.0 GiB are held and 512.0 MiB of 8.0 GiB are "
            "free; runtime.gpu_memory_limit is 7.0 GiB. Less is needed with more train.micro_batches, with a "
            "train.head_chunk, with train.precision \"bf16\", or with a smaller train.batch or train.bptt");
  const std::string without = out_of_memory_message("", {0, 0, 0, kGiB, 0}, kDecodingAdvice);
  EXPECT_NE(without.find("more was asked for"), std::string::npos);
  EXPECT_EQ(without.find("gpu_memory_limit"), std::string::npos);
  EXPECT_TRUE(without.ends_with("Less is needed with a smaller --memory-budget"));
}

}  // namespace
}  // namespace hsm
