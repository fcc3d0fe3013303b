#pragma once
#include "config/config.h"
#include "train/training_engine.h"

namespace hsm {

/// Where config.runtime.device says to train. UsageError when it asks for a GPU that can't be used, or when
/// train.precision needs one and there is none. With "auto" a GPU that can't be used is warned of.
TrainingEngineFactory choose_training_engine(const Config& config);

}  // namespace hsm
