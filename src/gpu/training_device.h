#pragma once
#include <string>

#include "config/config.h"
#include "kernels/cuda_device.h"
#include "train/training_engine.h"

namespace hsm {

/// Where config.runtime.device says to train; see kernels::choose_device(). With "auto" a GPU that is there
/// and not used is told of. UsageError when a GPU is asked for that can't be used, or when train.precision
/// needs one and none is asked for.
TrainingEngineFactory choose_training_engine(const Config& config);

/// What "auto" tells of a GPU that it leaves idle, and how to use it; empty when there is none that will do.
std::string idle_gpu_note(const kernels::CudaSurvey& survey);

}  // namespace hsm
