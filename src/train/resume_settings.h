#pragma once
#include <filesystem>
#include <string>
#include <vector>

#include "config/config.h"

namespace hsm {

/// Compares the settings a run was started with (`before`, read from `file`) and those it is to go on with.
/// What may change freely (lengths, intervals, paths, devices) passes; what changes the result but not the
/// shape of things (learning rate, schedule, clipping, dropout, validation), or is passed over as the run has
/// its own (files of words and classes), is returned as warnings for when the run does go on; the rest is a
/// UsageError that lists each difference. docs/training.md has the table.
std::vector<std::string> check_resume_settings(const Config& before, const Config& now,
                                               const std::filesystem::path& file);

}  // namespace hsm
