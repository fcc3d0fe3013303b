#include "gpu/cuda/guarded_engine.h"

#include <c10/cuda/CUDACachingAllocator.h>
#include <c10/cuda/CUDAFunctions.h>
#include <c10/util/Exception.h>
#include <cuda_runtime_api.h>

#include <cstdlib>
#include <string>
#include <string_view>
#include <utility>

#include "base/error.h"
#include "gpu/out_of_memory.h"

namespace hsm {
namespace {

DeviceMemory memory_of(const GpuOptions& options) {
  DeviceMemory memory;
  memory.device = options.device;
  memory.limit = options.memory_limit;
  size_t free = 0;
  size_t total = 0;
  if (cudaMemGetInfo(&free, &total) == cudaSuccess) {
    memory.free = free;
    memory.total = total;
  }
  const auto stats =
      c10::cuda::CUDACachingAllocator::getDeviceStats(static_cast<c10::DeviceIndex>(options.device));
  memory.held = static_cast<uint64_t>(stats.allocated_bytes[0].current);
  return memory;
}

template <class Function>
auto translated(const GpuOptions& options, Function function, const char* advice = kTrainingAdvice) {
  try {
    return function();
  } catch (const c10::OutOfMemoryError& error) {
    throw ResourceError(
        out_of_memory_message(asked_memory(error.what_without_backtrace()), memory_of(options), advice));
  } catch (const c10::Error& error) {
    throw Error(ExitCode::fault,
                "cuda:" + std::to_string(options.device) + ": " + error.what_without_backtrace());
  }
}

/// Makes LibTorch refuse to wait for the device, for a scope: HSM_CUDA_NO_WAIT=1, in tests.
class NoWaiting {
 public:
  NoWaiting() {
    const char* value = std::getenv("HSM_CUDA_NO_WAIT");
    if (value != nullptr && std::string_view(value) == "1") set(c10::cuda::SyncDebugMode::L_ERROR);
  }
  ~NoWaiting() { set(c10::cuda::SyncDebugMode::L_DISABLED); }
  NoWaiting(const NoWaiting&) = delete;
  NoWaiting& operator=(const NoWaiting&) = delete;

 private:
  static void set(c10::cuda::SyncDebugMode mode) { c10::cuda::warning_state().set_sync_debug_mode(mode); }
};

class GuardedEngine final : public TrainingEngine {
 public:
  GuardedEngine(std::unique_ptr<TrainingEngine> engine, const GpuOptions& options)
      : engine_(std::move(engine)), options_(options) {}

  [[nodiscard]] const ModelShape& shape() const noexcept override { return engine_->shape(); }
  [[nodiscard]] const HeadLayout& layout() const noexcept override { return engine_->layout(); }
  [[nodiscard]] int64_t lookahead() const noexcept override { return engine_->lookahead(); }
  [[nodiscard]] int64_t pending() const noexcept override { return engine_->pending(); }
  void begin_step(const Batch& batch, const StepOptions& options) override {
    const NoWaiting during_the_step;
    translated(options_, [&] { engine_->begin_step(batch, options); });
  }
  StepResult finish_step() override {
    return translated(options_, [&] { return engine_->finish_step(); });
  }
  void settle() override {
    translated(options_, [&] { engine_->settle(); });
  }
  void start_averaging() override {
    translated(options_, [&] { engine_->start_averaging(); });
  }
  [[nodiscard]] bool averaging() const noexcept override { return engine_->averaging(); }
  WeightView weights() override {
    return translated(options_, [&] { return engine_->weights(); });
  }
  std::unique_ptr<TextScorer> make_scorer(int32_t end_of_sentence, const LogitScales& scales) override {
    return make_guarded_scorer([&] { return engine_->make_scorer(end_of_sentence, scales); }, options_);
  }
  void append_state(std::vector<StateTensor>& tensors) override {
    translated(options_, [&] { engine_->append_state(tensors); });
  }
  void restore(const Checkpoint& checkpoint) override {
    translated(options_, [&] { engine_->restore(checkpoint); });
  }

 private:
  std::unique_ptr<TrainingEngine> engine_;
  GpuOptions options_;
};

class GuardedScorer final : public TextScorer {
 public:
  GuardedScorer(std::unique_ptr<TextScorer> scorer, const GpuOptions& options)
      : scorer_(std::move(scorer)), options_(options) {}

  [[nodiscard]] StreamState start() const override { return scorer_->start(); }
  void score_stream(std::span<const int32_t> words, StreamState& state,
                    std::span<TokenScore> scores) override {
    translated(options_, [&] { scorer_->score_stream(words, state, scores); });
  }
  void score_sentences(std::span<const int32_t> words, std::span<const int64_t> lengths,
                       std::span<TokenScore> scores) override {
    translated(options_, [&] { scorer_->score_sentences(words, lengths, scores); });
  }

 private:
  std::unique_ptr<TextScorer> scorer_;
  GpuOptions options_;
};

class GuardedDecodeDevice final : public DecodeDevice {
 public:
  GuardedDecodeDevice(std::unique_ptr<DecodeDevice> device, const GpuOptions& options)
      : device_(std::move(device)), options_(options) {}

  [[nodiscard]] int64_t words() const override { return device_->words(); }
  [[nodiscard]] int64_t clusters() const override { return device_->clusters(); }
  [[nodiscard]] int64_t useful_rows() const override { return device_->useful_rows(); }
  [[nodiscard]] int64_t useful_inputs() const override { return device_->useful_inputs(); }
  [[nodiscard]] uint64_t weight_copies() const override { return device_->weight_copies(); }
  [[nodiscard]] std::unique_ptr<RowEngine> make_engine(Arena& arena, const WordFilter& filter,
                                                       const EngineLimits& limits) const override {
    return translated(
        options_, [&] { return device_->make_engine(arena, filter, limits); }, kDecodingAdvice);
  }

 private:
  std::unique_ptr<DecodeDevice> device_;
  GpuOptions options_;
};

}  // namespace

std::unique_ptr<DecodeDevice> make_guarded_decode_device(
    const std::function<std::unique_ptr<DecodeDevice>()>& make, const GpuOptions& options) {
  return std::make_unique<GuardedDecodeDevice>(translated(options, make, kDecodingAdvice), options);
}

std::unique_ptr<TextScorer> make_guarded_scorer(const std::function<std::unique_ptr<TextScorer>()>& make,
                                                const GpuOptions& options) {
  return std::make_unique<GuardedScorer>(translated(options, make), options);
}

std::unique_ptr<TrainingEngine> make_guarded(const std::function<std::unique_ptr<TrainingEngine>()>& make,
                                             const GpuOptions& options) {
  return std::make_unique<GuardedEngine>(translated(options, make), options);
}

}  // namespace hsm
