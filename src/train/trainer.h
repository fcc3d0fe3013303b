#pragma once
#include "config/config.h"
#include "train/training_engine.h"
#include "train/training_loop.h"

namespace hsm {

/// Trains the model that `config` describes into config.output.directory, which is locked meanwhile.
///
/// Without `resume`, a directory that holds a run is refused (UsageError). With it, a run that is there goes
/// on from its newest whole checkpoint, one that is finished is left alone, and where nothing is a run
/// starts. A run stopped and resumed any number of times ends in the same bits as an uninterrupted one.
/// `make_engine` chooses where to compute. Errors: UsageError for settings that don't fit, DataError for
/// texts and damaged runs, ResourceError for a full disk or a directory in use, Error with
/// ExitCode::diverged.
Outcome train(const Config& config, bool resume, const TrainingRequests& requests,
              const TrainingEngineFactory& make_engine = make_cpu_engine);

}  // namespace hsm
