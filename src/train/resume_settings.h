#pragma once
#include <filesystem>

#include "config/config.h"

namespace hsm {

/// Compares the settings a run was started with (`before`, read from `file`) and those it is to go on with.
/// What may change freely (lengths, intervals, paths, devices) passes; what changes the result but not the
/// shape of things (learning rate, schedule, clipping, dropout, validation) is warned of; the rest is a
/// UsageError that lists each difference. docs/training.md has the table.
void check_resume_settings(const Config& before, const Config& now, const std::filesystem::path& file);

}  // namespace hsm
