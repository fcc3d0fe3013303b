#pragma once
#include <memory>
#include <string>

#include "base/thread_pool.h"
#include "decode/row_engine.h"
#include "model/model_directory.h"

namespace hsm {

/// A saved model ready for decoding on the device that is asked for; see kernels::choose_device(). Model and
/// pool outlive it. UsageError when a GPU is asked for that can't be used.
std::unique_ptr<DecodeDevice> open_decode_device(const SavedModel& saved, const std::string& device,
                                                 ThreadPool& pool);

}  // namespace hsm
