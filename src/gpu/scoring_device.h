#pragma once
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "eval/text_scorer.h"
#include "model/model_directory.h"

namespace hsm {

/// A scorer of a saved model on the device that is asked for; see kernels::choose_device(). Model and pool
/// outlive it. UsageError when a GPU is asked for that can't be used.
std::unique_ptr<TextScorer> make_text_scorer(const SavedModel& saved, const std::string& device,
                                             ThreadPool& pool);

}  // namespace hsm
