#include "gpu/scoring_device.h"

#include <optional>

#include "eval/token_scorer.h"
#include "gpu/gpu_module.h"
#include "kernels/cuda_device.h"

namespace hsm {

std::unique_ptr<TextScorer> make_text_scorer(const SavedModel& saved, const std::string& device,
                                             ThreadPool& pool) {
  const int32_t end_of_sentence = saved.vocabulary.end_of_sentence();
  if (const std::optional<int> gpu = kernels::choose_device(device)) {
    return open_gpu_module().make_text_scorer(saved.shape, saved.layout, saved.weight_view(), end_of_sentence,
                                              {*gpu, 0});
  }
  return make_cpu_scorer(saved.shape, saved.layout,
                         ScaledWeights(saved.shape, saved.layout, saved.weight_view(), {}), end_of_sentence,
                         pool);
}

}  // namespace hsm
