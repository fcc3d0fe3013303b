#pragma once
#include <functional>
#include <memory>

#include "gpu/gpu_module.h"

namespace hsm {

/// Makes an engine, in which errors of LibTorch and CUDA become this program's own: ResourceError with what
/// was asked, held and free when the device's memory does not suffice, else Error with ExitCode::fault.
std::unique_ptr<TrainingEngine> make_guarded(const std::function<std::unique_ptr<TrainingEngine>()>& make,
                                             const GpuOptions& options);

/// The same for a scorer.
std::unique_ptr<TextScorer> make_guarded_scorer(const std::function<std::unique_ptr<TextScorer>()>& make,
                                                const GpuOptions& options);

/// The same for a device to decode on. Its engines take all their memory when they are made; what they do
/// afterwards throws this program's errors of itself.
std::unique_ptr<DecodeDevice> make_guarded_decode_device(
    const std::function<std::unique_ptr<DecodeDevice>()>& make, const GpuOptions& options);

}  // namespace hsm
