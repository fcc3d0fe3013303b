#pragma once
#include <cstdint>
#include <filesystem>
#include <memory>
#include <string>

#include "decode/row_engine.h"
#include "train/training_engine.h"

namespace hsm {

/// Which GPU to compute on, and how much of its memory to take.
struct GpuOptions {
  int device = 0;             ///< as CUDA counts them
  uint64_t memory_limit = 0;  ///< bytes; 0: all there is
};

/// What runs on a GPU. It stands in a shared library of its own, libhsm_cuda.so, that is opened only when a
/// GPU is to be used: LibTorch's CUDA libraries take seconds to start and gigabytes to install, and all the
/// rest of the program does without them.
class GpuModule {
 public:
  virtual ~GpuModule() = default;
  /// ResourceError when the device's memory does not suffice, here and in all that the engine does.
  [[nodiscard]] virtual std::unique_ptr<TrainingEngine> make_training_engine(
      const Config& config, ModelShape shape, HeadLayout layout, ThreadPool& pool,
      const GpuOptions& options) const = 0;
  /// `weights` are copied; `layout` outlives the scorer.
  [[nodiscard]] virtual std::unique_ptr<TextScorer> make_text_scorer(const ModelShape& shape,
                                                                     const HeadLayout& layout,
                                                                     const WeightView& weights,
                                                                     int32_t end_of_sentence,
                                                                     const GpuOptions& options) const = 0;
  /// The same for decoding. UsageError for a model whose end symbol does not lie in the shortlist.
  [[nodiscard]] virtual std::unique_ptr<DecodeDevice> make_decode_device(const ModelShape& shape,
                                                                         const HeadLayout& layout,
                                                                         const WeightView& weights,
                                                                         int32_t end_of_sentence,
                                                                         const GpuOptions& options) const = 0;
};

/// The functions that libhsm_cuda.so exports. The first says what it was built for and must equal
/// gpu_module_version() of the program.
using HsmGpuModuleVersion = const char*();
using HsmGpuModule = const GpuModule*();

/// Version of the program and of its compiler: objects are passed to the module and back.
std::string gpu_module_version();

/// Where libhsm_cuda.so lies: beside the program or, installed, in ../lib/hsm. UsageError when it is in
/// neither.
std::filesystem::path find_gpu_module();

/// Opens it, for the life of the process. UsageError saying what is missing when it can't be used.
const GpuModule& load_gpu_module(const std::filesystem::path& library);

/// The module of this program. UsageError as of both.
const GpuModule& open_gpu_module();

}  // namespace hsm
