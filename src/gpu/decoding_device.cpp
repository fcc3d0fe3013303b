#include "gpu/decoding_device.h"

#include <optional>

#include "decode/cpu_engine.h"
#include "decode/model_scorer.h"
#include "gpu/gpu_module.h"
#include "kernels/cuda_device.h"

namespace hsm {
namespace {

/// The CPU, with the model that it decodes.
class CpuModel final : public DecodeDevice {
 public:
  CpuModel(const SavedModel& saved, ThreadPool& pool)
      : model_(saved.shape, saved.layout, saved.weight_view()),
        scorer_(model_, saved.vocabulary.end_of_sentence()),
        device_(scorer_, pool) {}

  [[nodiscard]] int64_t words() const override { return device_.words(); }
  [[nodiscard]] int64_t clusters() const override { return device_.clusters(); }
  [[nodiscard]] int64_t useful_rows() const override { return device_.useful_rows(); }
  [[nodiscard]] int64_t useful_inputs() const override { return device_.useful_inputs(); }
  [[nodiscard]] uint64_t weight_copies() const override { return model_.owned_bytes(); }
  [[nodiscard]] std::unique_ptr<RowEngine> make_engine(Arena& arena, const WordFilter& filter,
                                                       const EngineLimits& limits) const override {
    return device_.make_engine(arena, filter, limits);
  }

 private:
  InferenceModel model_;
  ModelScorer scorer_;
  CpuDecodeDevice device_;
};

}  // namespace

std::unique_ptr<DecodeDevice> open_decode_device(const SavedModel& saved, const std::string& device,
                                                 ThreadPool& pool) {
  const std::optional<int> gpu = kernels::choose_device(device);
  if (!gpu) return std::make_unique<CpuModel>(saved, pool);
  return open_gpu_module().make_decode_device(saved.shape, saved.layout, saved.weight_view(),
                                              saved.vocabulary.end_of_sentence(),
                                              {*gpu, saved.config.runtime.gpu_memory_limit});
}

}  // namespace hsm
