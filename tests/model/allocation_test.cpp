// The memory account of decoding is true only if inference takes nothing beside what its caller gives it.
#include <gtest/gtest.h>

#include <cstdlib>
#include <new>

#include "model/inference_model.h"
#include "model/sample_models.h"

namespace {

thread_local int64_t allocations = 0;

void* counted(std::size_t bytes) {
  ++allocations;
  void* memory = std::malloc(bytes == 0 ? 1 : bytes);
  if (memory == nullptr) throw std::bad_alloc();
  return memory;
}

}  // namespace

void* operator new(std::size_t bytes) {
  return counted(bytes);
}
void operator delete(void* memory) noexcept {
  std::free(memory);
}
void operator delete(void* memory, std::size_t) noexcept {
  std::free(memory);
}

namespace hsm {
namespace {

TEST(Allocation, InferenceTakesNoMemory) {
  constexpr int64_t kSteps = 3;
  constexpr int64_t kStreams = 7;
  for (const SampleModel& sample : sample_models()) {
    const ModelOracle oracle = sample.make(1);
    const InferenceModel model(oracle.shape(), oracle.layout(), oracle.weight_view());
    const std::vector<int32_t> tokens(kSteps * kStreams, 1);
    std::vector<float> state(static_cast<size_t>(kStreams * model.shape().state_size()));
    std::vector<float> output(static_cast<size_t>(kSteps * kStreams * model.shape().head_dim()));
    std::vector<float> scratch(static_cast<size_t>(model.run_scratch(kSteps, kStreams)));
    std::vector<float> log_probs(static_cast<size_t>(kStreams * model.shape().words));
    std::vector<const float*> rows;
    for (int64_t row = 0; row < kStreams; ++row)
      rows.push_back(output.data() + row * model.shape().head_dim());

    const int64_t before = allocations;
    model.run(tokens, kSteps, kStreams, state.data(), output.data(), scratch.data());
    model.root_log_probs(output.data(), kStreams, log_probs.data());
    for (int64_t cluster = 0; cluster < model.layout().clusters(); ++cluster) {
      model.leaf_log_probs(cluster, rows, log_probs.data());
    }
    EXPECT_EQ(allocations, before) << sample.name;
  }
}

}  // namespace
}  // namespace hsm
